/* The status page: well-formed whatever the names are, the findings first, no name without details.
 */
#include "tests/unit/daemon/ctl/survey/answers.h"
#include "tests/unit/daemon/metrics/written.h"

#include "daemon/metrics/page.h"

static struct sample last;
static struct page page;

static int set_up(void **state)
{
	last = (struct sample){.at_ms = 100000,
		.at_s = 1800000000,
		.mounts = json_pack("[o]", answer_read(mount_answer)),
		.server = answer_read(server_answer),
		.server_there = true,
		.findings = calloc(1, sizeof(*last.findings)),
		.history = history_new()};
	page = (struct page){.host = "node<1>", .now_ms = 101000, .interval_s = 5, .last = &last};
	return last.findings && last.history ? 0 : -1;
}

static int tear_down(void **state)
{
	json_decref(last.mounts);
	json_decref(last.server);
	free(last.findings);
	free(last.history);
	return drop_written(state);
}

static void look(void)
{
	page_write(write_anew(), &page);
	assert_well_formed(end_writing());
}

static json_t *mount(void)
{
	return json_array_get(last.mounts, 0);
}

static void find(const char *what)
{
	report_begin(&last.findings->report, "test");
	report_found(&last.findings->report, VERDICT_FAILURE, "%s", what);
	report_cause(&last.findings->report, "the cause of it");
	report_remedy(&last.findings->report, "the remedy <of> it");
}

static void page__that_is_well(void **state)
{
	last.findings->nmounts = 1;
	last.findings->nexports = 2;
	look();
	assert_says("<title>all is well: rmemfs on node&lt;1&gt;</title>");
	assert_says("Nothing: 1 mount and 2 exports are well.");
	assert_says("<meta http-equiv=\"refresh\" content=\"5\"/>");
	assert_says("The last 10 minutes");
	assert_says("<h3>data</h3>");
	assert_says("in files</dt><dd>0 B <small>0 %</small></dd>");
	assert_says("lent to mounts</dt><dd>1 MiB <small>&lt; 1 %</small></dd>");
	assert_says("free</dt><dd>191 MiB <small>99 %</small></dd>");
	assert_says("data-name=\"State\"><span class=\"badge ok\">connected</span>");
	assert_says_not("script");
	assert_says_not(" style=");
	page.still = true;
	look();
	assert_says_not("http-equiv");
	assert_says("<a href=\"./\">");
}

static void findings__come_first(void **state)
{
	find("a <b>thing</b> is wrong");
	look();
	assert_says("<title>1 critical: ");
	assert_says("a &lt;b&gt;thing&lt;/b&gt; is wrong");
	assert_says("<dt>Remedy</dt><dd>the remedy &lt;of&gt; it</dd>");
	assert_true(strstr(written, "is wrong") < strstr(written, "The last 10 minutes"));
	assert_true(strstr(written, "The last 10 minutes") < strstr(written, "<h3>data</h3>"));
	find("another");
	report_begin(&last.findings->report, "test");
	report_found(&last.findings->report, VERDICT_WARNING, "third");
	look();
	assert_says("<title>2 critical, 1 warning: ");
}

/* As many as there is room for, and more. */
static void findings__of_any_number(void **state)
{
	for (unsigned i = 0; i < REPORT_FINDINGS_MAX + 2; i++)
		find("one more");
	look();
	assert_says("More was found than these 192.");
}

static void names__with_details_alone(void **state)
{
	look();
	assert_says_not("/mnt/rmem");
	assert_says_not("node7");
	assert_says_not("10.0.0.1");
	assert_says("data-name=\"Mount\">42</th>");
	page.details = true;
	look();
	assert_says("/mnt/rmem <small>10.0.0.1:/data</small>");
	assert_says("node7:/mnt/rmem (pid 23892)");
	assert_says_not("test-6qpp");
}

static void names__that_are_markup(void **state)
{
	static const char hostile[] = "</td><script>\"'&amp;\x1b\xe2\x80\xae";
	json_t *answer = answer_part(mount(), "answer");

	page.details = true;
	answer_set(mount(), "mountpoint", json_string(hostile));
	answer_set(mount(), "source", json_string(hostile));
	answer_set(answer, "state", json_string(hostile));
	answer_set(answer, "transport", json_string(hostile));
	answer_set_number(answer, "oldest_request_ms", 5);
	json_object_set_new(answer_part(answer, "waiting"), hostile, json_integer(3));
	answer_set(json_array_get(answer_part(last.server, "exports"), 0), "name",
		json_string(hostile));
	answer_set(json_array_get(answer_part(last.server, "sessions"), 0), "client",
		json_string(hostile));
	look();
	assert_says_not("<script>");
	assert_says("&lt;/td&gt;&lt;script&gt;&quot;&#39;&amp;amp;??");
}

static void mount__that_does_not_answer(void **state)
{
	answer_set(mount(), "answer", json_null());
	look();
	assert_says("<span class=\"badge critical\">no answer</span>");
	answer_set(mount(), "allowed", json_false());
	look();
	assert_says("<span class=\"badge unknown\">not asked</span>");
}

static void server__that_does_not_answer(void **state)
{
	json_decref(last.server);
	last.server = NULL;
	look();
	assert_says_not("Exports");
	json_array_clear(last.mounts);
	look();
	assert_says_not("The last");
	last.server = json_pack("{s:s, s:i}", "version", "0.1.0", "wire_version", 8);
	look();
	assert_says_not("Exports");
}

static void region__that_is_lost(void **state)
{
	answer_set(json_array_get(answer_part(last.server, "regions"), 0), "lost", json_true());
	look();
	assert_says(
		"<rect class=\"lost\" x=\"0\" width=\"9\" height=\"10\"><title>region 0: 192 MiB, "
		"has lost bytes</title>");
}

static void sample__none_yet_or_old(void **state)
{
	page.now_ms = last.at_ms + 60000;
	look();
	assert_says("60 s old: daemons do not answer in time");
	last.at_ms = 0;
	look();
	assert_says("The daemons are being asked.");
	assert_says_not("Exports");
}

static void answers__of_other_kinds(void **state)
{
	static const char *const texts[] = {"{}", "{\"exports\":3,\"sessions\":{},\"pid\":1}",
		"{\"pid\":1,\"exports\":[null,7,{\"bytes\":-1,\"used\":9223372036854775807,\"regions\":-4}],"
		"\"sessions\":[3,{\"channels\":4}],\"regions\":[[],{\"index\":-1,\"bytes\":\"x\"}]}",
		"{\"pid\":1,\"exports\":[{\"name\":\"a\",\"regions\":2}],"
		"\"regions\":[{\"export\":\"a\"},{\"export\":\"a\"},{\"export\":\"a\"}]}"};

	page.details = true;
	for (unsigned i = 0; i < 4; i++) {
		json_decref(last.server);
		last.server = answer_read(texts[i]);
		json_array_clear(last.mounts);
		json_array_append(last.mounts, last.server);
		json_array_append_new(last.mounts, json_null());
		look();
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(page__that_is_well),
		CASE(findings__come_first),
		CASE(findings__of_any_number),
		CASE(names__with_details_alone),
		CASE(names__that_are_markup),
		CASE(mount__that_does_not_answer),
		CASE(server__that_does_not_answer),
		CASE(region__that_is_lost),
		CASE(sample__none_yet_or_old),
		CASE(answers__of_other_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
