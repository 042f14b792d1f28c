/* test_conf_edit.c - one value of a configuration's text is changed, and nothing else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/conf/conf_edit.h"

static const struct conf_place place = {"exports", "name", "data", "size"};

static void becomes(const char *text, const char *expected)
{
	char *out;

	assert_int_equal(conf_edit(text, &place, "2GiB", &out), 0);
	assert_string_equal(out, expected);
	free(out);
}

static void fails(const char *text, int expected)
{
	char *out = NULL;

	assert_int_equal(conf_edit(text, &place, "2GiB", &out), expected);
	assert_null(out);
}

static void edit__changes_one_value_only(void **state)
{
	becomes("exports = ( {\n\tname = \"data\";\n\tsize = \"1GiB\";\n} );\n",
		"exports = ( {\n\tname = \"data\";\n\tsize = \"2GiB\";\n} );\n");
	becomes("exports=({size=\"1GiB\",name=\"data\"})",
		"exports=({size=\"2GiB\",name=\"data\"})");
	becomes("exports : ( { name : \"data\" size : 1073741824L } );",
		"exports : ( { name : \"data\" size : \"2GiB\" } );");
	becomes("exports = ( { name = \"data\"; size = \"1\" /* of \" */ \"GiB\"; } );",
		"exports = ( { name = \"data\"; size = \"2GiB\"; } );");
}

static void edit__finds_the_group_by_its_name(void **state)
{
	becomes("exports = ( { name = \"a\"; size = \"1MiB\"; }, { name = \"data\"; size = \"1MiB\"; },"
		" { name = \"b\"; size = \"1MiB\"; } );",
		"exports = ( { name = \"a\"; size = \"1MiB\"; }, { name = \"data\"; size = \"2GiB\"; },"
		" { name = \"b\"; size = \"1MiB\"; } );");
}

static void edit__is_not_misled(void **state)
{
	becomes("# exports = ( { name = \"data\"; size = \"3GiB\"; } );\n"
		"// size = \"1\";\n/* name = \"data\" } ) */\n"
		"other = { name = \"data\"; size = \"5GiB\"; };\nlisten = [ \"a;{(\\\"\", \"b\" ];\n"
		"exports = ( { clients = ( { name = \"data\"; size = \"7\"; } ); name = \"data\";\n"
		"  quotas = ( { user = \"*\"; size = \"9\"; } ); # the size = \"1\"\n"
		"  size = \"1GiB\"; inodes = -1; } );\n",
		"# exports = ( { name = \"data\"; size = \"3GiB\"; } );\n"
		"// size = \"1\";\n/* name = \"data\" } ) */\n"
		"other = { name = \"data\"; size = \"5GiB\"; };\nlisten = [ \"a;{(\\\"\", \"b\" ];\n"
		"exports = ( { clients = ( { name = \"data\"; size = \"7\"; } ); name = \"data\";\n"
		"  quotas = ( { user = \"*\"; size = \"9\"; } ); # the size = \"1\"\n"
		"  size = \"2GiB\"; inodes = -1; } );\n");
}

static void edit__needs_the_place(void **state)
{
	fails("", -ENOENT);
	fails("exports = ( { name = \"data\"; } );", -ENOENT);
	fails("exports = ( { name = \"date\"; size = \"1\"; } );", -ENOENT);
	fails("exports = ( { clients = ( { name = \"data\"; } ); size = \"1\"; } );", -ENOENT);
	fails("exports = ( { name = \"data\"; size = { }; } );", -ENOENT);
	fails("exports = { name = \"data\"; size = \"1\"; };", -ENOENT);
}

static void edit__refuses_what_it_can_not_read(void **state)
{
	char deep[256] = "a = ";

	fails("exports = ( { name = \"data\"; size = \"1\";", -EINVAL);
	fails("exports = ( { name \"data\"; } );", -EINVAL);
	fails("exports", -EINVAL);
	fails("= 1;", -EINVAL);
	fails("exports = ( { name = \"data", -EINVAL);
	fails("a = (", -EINVAL);
	fails("a = ;", -EINVAL);
	memset(deep + 4, '(', 100);
	fails(deep, -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edit__changes_one_value_only),
		cmocka_unit_test(edit__finds_the_group_by_its_name),
		cmocka_unit_test(edit__is_not_misled),
		cmocka_unit_test(edit__needs_the_place),
		cmocka_unit_test(edit__refuses_what_it_can_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
