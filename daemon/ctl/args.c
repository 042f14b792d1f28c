#include "daemon/ctl/args.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/transport/address.h"
#include "common/conf/args.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/base/word.h"
#include "common/rpc/wire_version.h"
#include "daemon/ctl/check.h"

enum {
	OPT_JSON = 256,
	OPT_KEY,
	OPT_SNAPSHOT,
	OPT_ONCE,
	OPT_CONFIG,
	OPT_HOST,
	OPT_YES,
	USAGE_BYTES = 192,
	HOURS_MAX = 87600,
};

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"key", required_argument, NULL, OPT_KEY},
	{"once", no_argument, NULL, OPT_ONCE},
	{"snapshot", required_argument, NULL, OPT_SNAPSHOT},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"host", required_argument, NULL, OPT_HOST},
	{"yes", no_argument, NULL, OPT_YES},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

#define HELP_HOST                                                                                  \
	"  HOST        the path of a local server's socket (default " RMEMFS_DEFAULT_SOCKET "),\n" \
	"              HOST[:PORT] or tcp:HOST[:PORT] (port 7470), verbs:HOST[:PORT],\n"           \
	"              shm:/PATH, or the source of a mount: HOST:/EXPORT\n"

#define HELP_KEY \
	"      --key FILE\n              keys to prove over tcp and verbs: shows what they may see\n"
#define HELP_JSON "      --json  print the server's answer as it is\n"
#define HELP_EXPORTS                                                                             \
	"  ACTION      list: the exports of the server\n"                                        \
	"              add: writes EXPORT.conf in exports.d, and reloads\n"                      \
	"              remove: has the server end EXPORT, with all files in it\n"                \
	"              resize: changes the size in EXPORT.conf, and reloads: it grows\n"         \
	"  EXPORT      its name\n"                                                               \
	"  SIZE        its size, as 64GiB: the memory is taken at once\n"                        \
	"      --config FILE\n"                                                                  \
	"              the server's configuration (default " RMEMFS_SYSCONFDIR "/server.conf)\n" \
	"      --host HOST\n"                                                                    \
	"              the server's socket (default " RMEMFS_DEFAULT_SOCKET ")\n"                \
	"      --key FILE\n"                                                                     \
	"              add: keys of the client that may mount it; it is named by FILE\n"         \
	"      --yes   remove: the loss of all files is meant\n"
/* The server answers all of these at once. */
#define HELP_STATUS_JSON "      --json  print the server's answer as it is: its whole status\n"

static const struct word command_words[] = {
	[CTL_STATUS] = {"status", CTL_STATUS},
	[CTL_MOUNTS] = {"mounts", CTL_MOUNTS},
	[CTL_LOG] = {"log", CTL_LOG},
	[CTL_UPGRADE] = {"upgrade", CTL_UPGRADE},
	[CTL_ABORT] = {"abort", CTL_ABORT},
	[CTL_EVICT] = {"evict", CTL_EVICT},
	[CTL_LEASES] = {"leases", CTL_LEASES},
	[CTL_WHO] = {"who", CTL_WHO},
	[CTL_QUOTA] = {"quota", CTL_QUOTA},
	[CTL_CHECK] = {"check", CTL_CHECK},
	[CTL_SNAPSHOT] = {"snapshot", CTL_SNAPSHOT},
	[CTL_RELOAD] = {"reload", CTL_RELOAD},
	[CTL_EXPORTS] = {"export", CTL_EXPORTS},
	[CTL_KEYGEN] = {"keygen", CTL_KEYGEN},
	[CTL_KEYCHECK] = {"keycheck", CTL_KEYCHECK},
	[CTL_DOCTOR] = {"doctor", CTL_DOCTOR},
	[CTL_HEALTH] = {"health", CTL_HEALTH},
	[CTL_REPORT] = {"report", CTL_REPORT},
	[CTL_TOP] = {"top", CTL_TOP},
	{0},
};

static const char *const operand_names[] = {
	[CTL_HOST] = "HOST",
	[CTL_EXPORT] = "EXPORT",
	[CTL_DIR] = "DIR",
	[CTL_PATH] = "PATH",
	[CTL_NAME] = "NAME",
	[CTL_FILE] = "FILE",
	[CTL_MOUNTPOINT] = "MOUNTPOINT",
	[CTL_TARGET] = "TARGET",
	[CTL_LEVEL] = "LEVEL",
	[CTL_SESSION] = "SESSION",
	[CTL_SERVER] = "HOST",
	[CTL_ACTION] = "ACTION",
	[CTL_SIZE] = "SIZE",
};

/* The actions of export, and the operands of each. */
static const struct action {
	const char *name;
	unsigned noperands;
	bool key, yes;
} actions[] = {{"list", 1, false, false}, {"add", 3, true, false}, {"remove", 2, false, true},
	{"resize", 3, false, false}};

static const struct command {
	const char *purpose; /* for the summary */
	const char *more;    /* for the command's own help; NULL: nothing */
	const char *help;    /* its operands and options */
	enum ctl_operand operands[CTL_OPERANDS];
	unsigned noperands, required; /* the others come last, and may be left out */
	bool json, key, snapshot, once;
	bool exports; /* has actions, --config and --host */
	int wrong;    /* exit status of wrong usage */
} commands[] = {
	[CTL_STATUS] =
		{
			.purpose = "shows the state of a server, or of a mount of this machine",
			.help = HELP_HOST
			"              Or a place where rmemfs is mounted on this machine\n" HELP_KEY
				HELP_JSON,
			.operands = {CTL_HOST},
			.noperands = 1,
			.json = true,
			.key = true,
			.wrong = EXIT_FAILURE,
		},
	[CTL_MOUNTS] =
		{
			.purpose = "lists the mounts of this machine, and how they are",
			.more = "Exit status: 0 all are connected, 1 some are not, or do not "
				"answer.\n",
			.help = "      --json  print the list with each daemon's answer\n",
			.json = true,
			.wrong = EXIT_FAILURE,
		},
	[CTL_LOG] =
		{
			.purpose = "sets the log level of a mount's daemon, or of a server",
			.help = "  TARGET      a place where rmemfs is mounted on this machine; or the "
				"word server:\n"
				"              this machine's server; or the path of a server's "
				"socket\n"
				"  LEVEL       error, warning, notice, info or debug\n",
			.operands = {CTL_TARGET, CTL_LEVEL},
			.noperands = 2,
			.required = 2,
			.wrong = EXIT_FAILURE,
		},
	[CTL_UPGRADE] =
		{
			.purpose = "moves a mount to the rmemfs that is installed now",
			.more = "Files stay open, and programs see a short pause. If it fails, "
				"the mount stays as it is.\n",
			.help = "  MOUNTPOINT  a place where rmemfs is mounted on this machine\n",
			.operands = {CTL_MOUNTPOINT},
			.noperands = 1,
			.required = 1,
			.wrong = EXIT_FAILURE,
		},
	[CTL_ABORT] =
		{
			.purpose = "ends a mount that hangs: what is not written is lost",
			.help = "  MOUNTPOINT  a place where rmemfs is mounted on this machine\n",
			.operands = {CTL_MOUNTPOINT},
			.noperands = 1,
			.required = 1,
			.wrong = EXIT_FAILURE,
		},
	[CTL_EVICT] =
		{
			.purpose = "ends a client's session at a server, so that others go on",
			.help = "  SESSION     its number, as 'rmemfsctl status' shows it\n" HELP_HOST,
			.operands = {CTL_SESSION, CTL_HOST},
			.noperands = 2,
			.required = 1,
			.wrong = EXIT_FAILURE,
		},
	[CTL_LEASES] =
		{
			.purpose = "shows leases and locks of mounts that share an export",
			.help = HELP_HOST HELP_KEY HELP_STATUS_JSON,
			.operands = {CTL_HOST},
			.noperands = 1,
			.json = true,
			.key = true,
			.wrong = EXIT_FAILURE,
		},
	[CTL_WHO] =
		{
			.purpose = "shows the clients that have a shared file, or wait for it",
			.help = "  EXPORT      name of the export\n"
				"  PATH        a file in it: /PATH from its root, or an inode's "
				"number\n" HELP_HOST HELP_JSON,
			.operands = {CTL_EXPORT, CTL_PATH, CTL_HOST},
			.noperands = 3,
			.required = 2,
			.json = true,
			.wrong = EXIT_FAILURE,
		},
	[CTL_QUOTA] =
		{
			.purpose = "shows the quotas of users and groups, and their use",
			.help = HELP_HOST HELP_KEY HELP_STATUS_JSON,
			.operands = {CTL_HOST},
			.noperands = 1,
			.json = true,
			.key = true,
			.wrong = EXIT_FAILURE,
		},
	[CTL_CHECK] =
		{
			.purpose = "checks the memory of a stopped server on this machine",
			.more = "Exit status: 0 clean, 1 problems, 2 could not be checked.\n",
			.help = "  DIR         the memory directory of the server\n",
			.operands = {CTL_DIR},
			.noperands = 1,
			.required = 1,
			.wrong = CTL_CHECK_IMPOSSIBLE,
		},
	[CTL_SNAPSHOT] =
		{
			.purpose = "writes a snapshot of an export to a disk, while it is in use",
			.help = "  EXPORT      name of the export\n"
				"  DIR         a new or empty directory on a disk of the server's "
				"machine\n" HELP_HOST,
			.operands = {CTL_EXPORT, CTL_DIR, CTL_HOST},
			.noperands = 3,
			.required = 2,
			.wrong = EXIT_FAILURE,
		},
	[CTL_RELOAD] =
		{
			.purpose = "makes a server read its configuration and all keys anew",
			.help = HELP_HOST HELP_JSON,
			.operands = {CTL_HOST},
			.noperands = 1,
			.json = true,
			.wrong = EXIT_FAILURE,
		},
	[CTL_EXPORTS] =
		{
			.purpose = "adds, enlarges and removes exports of a running server",
			.help = HELP_EXPORTS,
			.operands = {CTL_ACTION, CTL_EXPORT, CTL_SIZE},
			.noperands = 3,
			.required = 1,
			.key = true,
			.exports = true,
			.wrong = EXIT_FAILURE,
		},
	[CTL_KEYGEN] =
		{
			.purpose = "makes a key, by which a server lets clients in",
			.help = "  NAME        name of its holder: the key's id is NAME-xxxx\n"
				"  FILE        a new file for the key (default: standard output)\n",
			.operands = {CTL_NAME, CTL_FILE},
			.noperands = 2,
			.required = 1,
			.wrong = EXIT_FAILURE,
		},
	[CTL_KEYCHECK] =
		{
			.purpose = "shows the keys of a file, and all that is wrong with it",
			.more = "Exit status: 0 no fault, 1 faults.\n",
			.help = "  FILE        a file of keys\n",
			.operands = {CTL_FILE},
			.noperands = 1,
			.required = 1,
			.wrong = EXIT_FAILURE,
		},
	[CTL_DOCTOR] =
		{
			.purpose = "checks this machine, and each step of a connection",
			.more = "Without HOST it checks this machine alone.\n"
				"Exit status: 0 all well, 1 warnings, 2 failures.\n",
			.help = "  HOST        the path of a local server's socket, HOST[:PORT],\n"
				"              tcp:HOST[:PORT], verbs:HOST[:PORT], shm:/PATH, or the\n"
				"              source of a mount: HOST:/EXPORT\n" HELP_KEY
				"      --json  print the findings as one line of JSON\n",
			.operands = {CTL_SERVER},
			.noperands = 1,
			.json = true,
			.key = true,
			.wrong = CTL_DOCTOR_FAILURES,
		},
	[CTL_HEALTH] =
		{
			.purpose = "says in one answer whether all is well, for monitoring",
			.more = "Without HOST: all mounts of this machine, and its server.\n"
				"Exit status: 0 ok, 1 warning, 2 critical, 3 unknown.\n",
			.help = "  HOST        a place where rmemfs is mounted on this machine, or a "
				"server:\n"
				"              its socket's path, HOST[:PORT] or TRANSPORT:HOST[:PORT]"
				"\n" HELP_KEY "      --snapshot HOURS\n"
				"              warn of exports without a snapshot of the last HOURS\n"
				"      --json  print the answer as one line of JSON\n",
			.operands = {CTL_SERVER},
			.noperands = 1,
			.json = true,
			.key = true,
			.snapshot = true,
			.wrong = CTL_HEALTH_UNKNOWN,
		},
	[CTL_REPORT] =
		{
			.purpose = "gathers what others need to find the cause of a fault",
			.more = "It has names of machines, users, paths and addresses, and no keys.\n",
			.help = "  FILE        a new file for it (default: standard output)\n",
			.operands = {CTL_FILE},
			.noperands = 1,
			.wrong = EXIT_FAILURE,
		},
	[CTL_TOP] =
		{
			.purpose = "shows what mounts and sessions of this machine do, each second",
			.help = "      --once  show one second, and exit\n"
				"      --json  print each second as a line of JSON\n",
			.json = true,
			.once = true,
			.wrong = EXIT_FAILURE,
		},
};

/* ---- help ------------------------------------------------------------------------------------ */

/* "status [HOST] [--json]" */
static const char *usage_of(enum ctl_command command, char buf[USAGE_BYTES])
{
	const struct command *c = &commands[command];
	size_t at = (size_t)snprintf(buf, USAGE_BYTES, "%s", command_words[command].text);

	for (unsigned i = 0; i < c->noperands; i++)
		at += (size_t)snprintf(buf + at, USAGE_BYTES - at,
			i < c->required ? " %s" : " [%s]", operand_names[c->operands[i]]);
	if (c->exports)
		at += (size_t)snprintf(
			buf + at, USAGE_BYTES - at, " [--config FILE] [--host HOST] [--yes]");
	if (c->key)
		at += (size_t)snprintf(buf + at, USAGE_BYTES - at, " [--key FILE]");
	if (c->snapshot)
		at += (size_t)snprintf(buf + at, USAGE_BYTES - at, " [--snapshot HOURS]");
	if (c->once)
		at += (size_t)snprintf(buf + at, USAGE_BYTES - at, " [--once]");
	if (c->json)
		snprintf(buf + at, USAGE_BYTES - at, " [--json]");
	return buf;
}

static int print_summary(void)
{
	char usage[USAGE_BYTES];

	for (int i = 0; i < CTL_COMMANDS; i++)
		printf("%s rmemfsctl %s\n", i ? "      " : "Usage:", usage_of(i, usage));
	printf("       rmemfsctl [COMMAND] --help | --version\n\n");
	for (int i = 0; i < CTL_COMMANDS; i++)
		printf("  %-14s %s\n", command_words[i].text, commands[i].purpose);
	printf("\n"
	       "      --key FILE keys to prove over tcp and verbs; export add: of its client\n"
	       "      --snapshot HOURS\n"
	       "                 warn of exports without a snapshot of that time\n"
	       "      --once     show one second, and exit\n"
	       "      --config FILE\n"
	       "                 export: the server's configuration\n"
	       "      --host HOST\n"
	       "                 export: the server's socket\n"
	       "      --yes      export remove: the loss of all files is meant\n"
	       "      --json     print the server's answer as it is\n"
	       "  -V, --version  print the version and exit\n"
	       "  -h, --help     print this, or the usage of COMMAND, and exit\n");
	return EXIT_SUCCESS;
}

static int print_help(enum ctl_command command)
{
	const struct command *c = &commands[command];
	char usage[USAGE_BYTES];

	printf("Usage: rmemfsctl %s\n%c%s.\n%s\n%s  -h, --help  print this and exit\n",
		usage_of(command, usage), toupper(c->purpose[0]), c->purpose + 1,
		c->more ? c->more : "", c->help);
	return EXIT_SUCCESS;
}

/* ---- what was written ------------------------------------------------------------------------ */

/* command NULL: none is known. */
__attribute__((format(printf, 2, 3))) static int wrong(
	const enum ctl_command *command, const char *format, ...)
{
	char text[512], usage[USAGE_BYTES];
	va_list list;
	size_t len;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	len = strlen(text);
	if (command)
		snprintf(text + len, sizeof(text) - len, " (usage: rmemfsctl %s)",
			usage_of(*command, usage));
	log_complaint("rmemfsctl", text);
	return command ? commands[*command].wrong : EXIT_FAILURE;
}

/* Finds the command beside a wrong option: getopt_long() may not have come so far. */
static const enum ctl_command *command_beside(int argc, char **argv, enum ctl_command *command)
{
	int i = 1, value;

	while (i < argc && argv[i][0] == '-')
		i++;
	if (i == argc || !word_find(command_words, argv[i], &value))
		return NULL;
	*command = (enum ctl_command)value;
	return command;
}

static int read_command(const char *text, enum ctl_command *command)
{
	char all[USAGE_BYTES], quoted[WORD_QUOTED_BYTES];
	int value;

	word_list(command_words, all, sizeof(all));
	if (!text)
		return wrong(NULL, "a command is missing: %s; see --help", all);
	if (!word_find(command_words, text, &value))
		return wrong(
			NULL, "command %s: unknown; must be %s", word_quote(text, quoted), all);
	*command = (enum ctl_command)value;
	return -1;
}

/* The operands in their order, after the action. */
static int check_action(const struct ctl_args *args)
{
	static const enum ctl_operand order[] = {CTL_ACTION, CTL_EXPORT, CTL_SIZE};
	const char *name = args->operands[CTL_ACTION];
	const struct action *action = actions, *end = actions + ARRAY_SIZE(actions);
	char quoted[WORD_QUOTED_BYTES];

	while (action < end && strcmp(action->name, name) != 0)
		action++;
	if (action == end)
		return wrong(&args->command, "ACTION %s: must be list, add, remove or resize",
			word_quote(name, quoted));
	for (unsigned i = 1; i < ARRAY_SIZE(order); i++) {
		const char *value = args->operands[order[i]];

		if (i < action->noperands && !value)
			return wrong(&args->command, "%s is missing", operand_names[order[i]]);
		if (i >= action->noperands && value)
			return wrong(&args->command, "%s: one operand too many",
				word_quote(value, quoted));
	}
	if (args->key_file && !action->key)
		return wrong(&args->command, "option '--key': has no meaning for %s", name);
	if (args->yes && !action->yes)
		return wrong(&args->command, "option '--yes': has no meaning for %s", name);
	return -1;
}

static int check_exports(const struct ctl_args *args)
{
	if (commands[args->command].exports)
		return -1;
	if (args->config || args->has_host || args->yes)
		return wrong(&args->command, "option '--%s': has no meaning for %s",
			args->config     ? "config"
			: args->has_host ? "host"
					 : "yes",
			command_words[args->command].text);
	return -1;
}

/* words end with NULL, as argv does. */
static int read_operands(char **words, struct ctl_args *args)
{
	const struct command *c = &commands[args->command];
	char quoted[WORD_QUOTED_BYTES];

	if (args->json && !c->json)
		return wrong(&args->command, "option '--json': has no meaning for %s",
			command_words[args->command].text);
	if (args->key_file && !c->key)
		return wrong(&args->command, "option '--key': has no meaning for %s",
			command_words[args->command].text);
	if (args->key_file && !*args->key_file)
		return wrong(&args->command, "option '--key': FILE must not be empty");
	if (args->once && !c->once)
		return wrong(&args->command, "option '--once': has no meaning for %s",
			command_words[args->command].text);
	if (args->snapshot_max && !c->snapshot)
		return wrong(&args->command, "option '--snapshot': has no meaning for %s",
			command_words[args->command].text);
	if (check_exports(args) >= 0)
		return c->wrong;
	for (unsigned i = 0; i < c->noperands; i++) {
		enum ctl_operand operand = c->operands[i];

		if (!*words && i >= c->required)
			break;
		/* A name has no slash, so this is the operand after it. */
		if (!*words || (operand == CTL_EXPORT && **words == '/'))
			return wrong(&args->command, "%s is missing", operand_names[operand]);
		if (!**words)
			return wrong(
				&args->command, "%s must not be empty", operand_names[operand]);
		args->operands[operand] = *words++;
	}
	if (*words)
		return wrong(
			&args->command, "%s: one operand too many", word_quote(*words, quoted));
	return c->exports ? check_action(args) : -1;
}

/* False: it is no number of hours. */
static bool read_hours(const char *text, unsigned *hours)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || n < 1 || n > HOURS_MAX)
		return false;
	*hours = (unsigned)n;
	return true;
}

int ctl_args_read(int argc, char **argv, struct ctl_args *args)
{
	bool asks_help = false;
	char why[256];
	int opt, status;

	*args = (struct ctl_args){.operands[CTL_HOST] = RMEMFS_DEFAULT_SOCKET};
	opterr = 0;
	optind = 0;
	while ((opt = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
		switch (opt) {
		case OPT_JSON:
			args->json = true;
			break;
		case OPT_KEY:
			args->key_file = optarg;
			break;
		case OPT_ONCE:
			args->once = true;
			break;
		case OPT_SNAPSHOT:
			if (read_hours(optarg, &args->snapshot_max))
				break;
			return wrong(command_beside(argc, argv, &args->command),
				"option '--snapshot': must be a number of hours, 1 to %d",
				HOURS_MAX);
		case OPT_CONFIG:
			args->config = optarg;
			break;
		case OPT_HOST:
			args->operands[CTL_HOST] = optarg;
			args->has_host = true;
			break;
		case OPT_YES:
			args->yes = true;
			break;
		case 'V':
			printf("rmemfsctl %s (wire protocol %u)\n", RMEMFS_VERSION, wire_version());
			return EXIT_SUCCESS;
		case 'h':
			asks_help = true;
			break;
		default:
			args_explain(argv, opt, long_options, why, sizeof(why));
			return wrong(command_beside(argc, argv, &args->command), "%s", why);
		}
	}
	if (asks_help && !argv[optind])
		return print_summary();
	status = read_command(argv[optind], &args->command);
	if (status >= 0)
		return status;
	return asks_help ? print_help(args->command) : read_operands(argv + optind + 1, args);
}
