/* answers.h - what a server and a mount that are well have answered, for the tests of rmemfsctl
 * health, and ways to change them. */
#pragma once

#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <jansson.h>

static const char server_answer[] =
	"{\"version\":\"0.1.0\",\"wire_version\":8,\"pid\":23784,"
	"\"incarnation\":\"1795738869284586596\","
	"\"store_id\":\"3518c222dc3dadfe2c9cc2cebaa73343\",\"uptime_ms\":192,"
	"\"lease_ms\":10000,\"memory_dir\":\"/dev/shm/rmemfs\","
	"\"listen\":[\"tcp:10.0.0.1:7470\",\"shm:/run/rmemfs/server.sock\"],"
	"\"store\":{\"bytes\":67108864,\"used\":49152,"
	"\"transactions\":6,\"directory_offset_bits\":31},"
	"\"exports\":[{\"name\":\"data\",\"bytes\":201326592,\"used\":0,\"free\":200278016,"
	"\"granted\":1048576,\"dirty\":0,\"files\":2,\"max_inodes\":20,\"regions\":1,"
	"\"lost_regions\":0,\"protection\":\"best\",\"metadata\":{\"bytes\":67108864,"
	"\"used\":28672,\"left\":58671104},\"counters\":{\"reads\":0,\"writes\":0,"
	"\"read_bytes\":0,\"write_bytes\":0,\"rpcs\":0,\"rpc_data_bytes\":0},"
	"\"last_snapshot\":null,\"snapshot\":null,\"leases\":{\"layouts\":0,\"shared\":1,"
	"\"exclusive\":1,\"pins\":1,\"waiting\":0,\"recalled\":0,\"locks\":0,"
	"\"lock_waits\":0},\"contested\":[],\"contested_locks\":[],"
	"\"quotas\":[{\"user\":1234,\"everybody\":false,\"used\":0,\"reserved\":0,"
	"\"limit\":0,\"inodes\":0,\"max_inodes\":10},{\"user\":0,\"everybody\":false,"
	"\"used\":0,\"reserved\":0,\"limit\":0,\"inodes\":2,\"max_inodes\":0},{\"group\":0,"
	"\"everybody\":false,\"used\":0,\"reserved\":0,\"limit\":0,\"inodes\":2,"
	"\"max_inodes\":0}],\"unlisted\":0}],\"regions\":[{\"export\":\"data\",\"index\":0,"
	"\"bytes\":201326592,\"file\":\"/dev/shm/rmemfs/regions/data.0000\","
	"\"lost\":false}],\"sessions\":[{\"id\":1,\"holder\":\"test\","
	"\"client\":\"node7:/mnt/rmem (pid 23892)\",\"export\":\"data\","
	"\"state\":\"active\",\"read_only\":false,\"exclusive\":false,\"shared\":true,"
	"\"squash\":{\"kind\":\"none\",\"anonuid\":0,\"anongid\":0},"
	"\"leases\":{\"layouts\":0,\"shared\":1,\"exclusive\":1,\"pins\":1,\"locks\":0},"
	"\"recalls\":0,\"silent_ms\":7,\"requests\":5,\"channels\":[{\"index\":0,"
	"\"transport\":\"tcp\",\"device\":\"tcp\",\"peer\":\"tcp 10.0.0.1:39376\","
	"\"state\":\"open\",\"keys\":1,\"key\":\"test-6qpp\",\"protection\":\"all\"},"
	"{\"index\":1,\"transport\":\"tcp\",\"device\":\"tcp\","
	"\"peer\":\"tcp 10.0.0.1:39392\",\"state\":\"open\",\"keys\":1,\"key\":\"test-6qpp\","
	"\"protection\":\"all\"}],\"counters\":{\"reads\":0,\"writes\":0,\"read_bytes\":0,"
	"\"write_bytes\":0,\"rpcs\":0,\"rpc_data_bytes\":0},\"waits_for\":[],\"pid\":0,\"stopped\":false,"
	"\"key\":\"test-6qpp\",\"reconnects\":{\"count\":0,\"recent\":0},"
	"\"late_recalls\":{\"count\":0,\"recent\":0,\"longest_ms\":0}}],"
	"\"totals\":{\"reads\":0,\"writes\":0,\"read_bytes\":0,\"write_bytes\":0,"
	"\"rpcs\":0,\"rpc_data_bytes\":0},\"channels\":3,\"refused\":0,"
	"\"keys\":[{\"key\":\"test-6qpp\",\"file\":\"/etc/rmemfs/keys/test.key\",\"channels\":2,"
	"\"count\":2,\"unused_ms\":0,\"known_ms\":192},{\"key\":\"old-k7q2\",\"file\":"
	"\"/etc/rmemfs/keys/old.key\",\"channels\":0,\"count\":0,\"unused_ms\":192,"
	"\"known_ms\":192}],"
	"\"refused_keys\":[],\"cpu\":{\"span_ms\":10000,\"wait_ms\":2,\"total_wait_ms\":9,"
	"\"late_ms\":1,\"throttled\":false,\"starved\":false,\"pauses\":0,"
	"\"recent_pauses\":0,\"longest_pause_ms\":0}}";

static const char mount_answer[] =
	"{\"mountpoint\":\"/mnt/rmem\",\"source\":\"10.0.0.1:/data\",\"connection\":42,"
	"\"uid\":0,\"allowed\":true,\"answer\":{\"version\":\"0.1.0\",\"pid\":23892,"
	"\"connection\":42,\"mountpoint\":\"/mnt/rmem\",\"source\":\"10.0.0.1:/data\","
	"\"server\":\"tcp 10.0.0.1:7470\",\"transport\":\"tcp\",\"no_verbs\":\"\",\"protection\":\"all\","
	"\"mounted\":1795738870,\"mounted_ms\":107,\"options\":{\"share\":true,"
	"\"cache\":\"none\",\"ack\":\"local\",\"io_threads\":2,\"soft_ms\":0,"
	"\"verbs\":false},\"state\":\"connected\",\"state_ms\":0,\"session\":{\"id\":1,"
	"\"lease_ms\":10000,\"losses\":0,\"last_loss\":null,\"last_attempt\":null,\"read_only\":false,"
	"\"squashed\":false},\"granted\":1048576,\"cpu\":{\"span_ms\":10000,\"wait_ms\":2,"
	"\"total_wait_ms\":9,\"late_ms\":1,\"throttled\":false,\"starved\":false,"
	"\"pauses\":0,\"recent_pauses\":0,\"longest_pause_ms\":0},\"threads\":[{\"answers\":true,"
	"\"connected\":true,\"silent_ms\":9,\"rpcs\":0,\"transfers\":0,\"requests\":0,"
	"\"lock_waits\":0,\"parked\":0},{\"answers\":true,\"connected\":true,"
	"\"silent_ms\":0,\"rpcs\":0,\"transfers\":0,\"requests\":0,\"lock_waits\":0,"
	"\"parked\":0}],\"oldest_request_ms\":0,\"waiting\":{},\"requests\":[],"
	"\"operations\":{\"lookup\":{\"count\":2,\"errors\":0,\"bytes\":0,"
	"\"total_ns\":110364,\"p50_ns\":32768,\"p99_ns\":81920,\"latency_ns\":[[32768,"
	"1],[81920,1]]}}},\"error\":null}";

static inline json_t *answer_read(const char *text)
{
	json_t *answer = json_loads(text, 0, NULL);

	assert_non_null(answer);
	return answer;
}

/* An existing member, so that a test can't miss a name. */
static inline void answer_set(json_t *object, const char *key, json_t *value)
{
	assert_non_null(json_object_get(object, key));
	json_object_set_new(object, key, value);
}

static inline void answer_set_number(json_t *object, const char *key, json_int_t n)
{
	answer_set(object, key, json_integer(n));
}

static inline json_t *answer_part(json_t *object, const char *key)
{
	json_t *part = json_object_get(object, key);

	assert_non_null(part);
	return part;
}
