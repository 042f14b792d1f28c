/* Bars and charts: parts and points are where their values say. */
#include "tests/unit/daemon/metrics/written.h"

#include <math.h>

#include "daemon/metrics/draw.h"

enum { SPAN_MS = 600000, STEP_MS = 5000 };

static struct history *h;
static const struct draw_time now = {1000000, SPAN_MS};

static const struct draw_line line[] = {{"read", "a", HISTORY_READ_BYTES}};
static const struct draw_chart chart = {.id = "x",
	.title = "Bytes & <more>",
	.lines = line,
	.nlines = 1,
	.figure = figure_byte_rate,
	.unit = 1024,
	.least = 1024};

static int set_up(void **state)
{
	h = history_new();
	return h ? 0 : -1;
}

static int tear_down(void **state)
{
	free(h);
	return drop_written(state);
}

/* A moment so long ago; a value below 0: there is none. */
static void moment(int64_t age_ms, double value)
{
	history_begin(h, now.now_ms - age_ms);
	history_put(h, "t", HISTORY_READ_BYTES, value);
}

static void draw(const struct draw_chart *c)
{
	draw_chart(write_anew(), c, &now, h, history_find(h, "t"));
	assert_well_formed(end_writing());
}

static void bar__parts_of_a_whole(void **state)
{
	const struct draw_part parts[] = {
		{"a & b", "used", 1024}, {"none", "lent", 0}, {"too much", "free", 8192}};

	draw_bar(write_anew(), "<Bar>", parts, 3, 4096, figure_bytes);
	assert_well_formed(end_writing());
	assert_says("x=\"0.00\" width=\"250.00\"><title>a &amp; b: 1 KiB</title>");
	assert_says("x=\"250.00\" width=\"750.00\"><title>too much: 8 KiB</title>");
	assert_says("<title>&lt;Bar&gt;</title>");
	assert_says("<dd>1 KiB <small>25 %</small></dd>");
	assert_says("none</dt><dd>0 B <small>0 %</small></dd>");
	draw_bar(write_anew(), "of nothing", parts, 3, 0, figure_bytes);
	assert_well_formed(end_writing());
	assert_says_not("<rect");
}

static void chart__without_values(void **state)
{
	draw(&chart);
	assert_says("<path class=\"line a\" d=\"\"/>");
	assert_says("Bytes &amp; &lt;more&gt;");
	assert_says("10 min ago");
	assert_says("1 KiB/s</span><span>512 B/s</span><span>0 B/s");
	assert_says("read <b>–</b>");
}

/* 600 wide, 120 high; the axis ends at 2048. */
static void chart__points_and_gaps(void **state)
{
	moment(SPAN_MS + STEP_MS, 9999999);
	moment(SPAN_MS / 2, 0);
	moment(SPAN_MS / 2 - STEP_MS, 2048);
	moment(SPAN_MS / 2 - 2 * STEP_MS, -1);
	moment(SPAN_MS / 2 - 3 * STEP_MS, 512);
	moment(0, 1024);
	draw(&chart);
	assert_says("<path class=\"line a\" d=\"M300.0 120.0L305.0 0.0h0.01M315.0 90.0h0.01"
		    "M600.0 60.0h0.01\"/>");
	assert_says("<path class=\"area a\" d=\"M300.0 120.0L305.0 0.0V120 H300.0 Z");
	assert_says("read <b>1 KiB/s</b> <small>max 2 KiB/s</small>");
}

static void chart__of_decades(void **state)
{
	static const struct draw_line times[] = {{"read", "a", HISTORY_P50}};
	const struct draw_chart c = {.id = "x",
		.title = "t",
		.lines = times,
		.nlines = 1,
		.figure = figure_time,
		.logarithmic = true};

	history_begin(h, now.now_ms - STEP_MS);
	history_put(h, "t", HISTORY_P50, 0);
	history_begin(h, now.now_ms);
	history_put(h, "t", HISTORY_P50, 1e5);
	draw(&c);
	assert_says("<span>10.0 ms</span><span>1.0 ms</span><span>100.0 us</span>");
	assert_says("d=\"M600.0 120.0h0.01\"");
	history_put(h, "t", HISTORY_P50, 9.2e18); /* longer than the last bound */
	draw(&c);
	assert_says("d=\"M600.0 0.0h0.01\"");
}

static void spark__is_a_sum(void **state)
{
	moment(STEP_MS, 0);
	moment(0, 30);
	history_put(h, "t", HISTORY_WRITE_BYTES, 10);
	draw_spark(write_anew(), "all", &now, h, history_find(h, "t"), HISTORY_READ_BYTES,
		HISTORY_WRITE_BYTES);
	assert_well_formed(end_writing());
	assert_says("<path class=\"line a\" d=\"M120.0 0.0h0.01\"/>");
	draw_spark(write_anew(), "none", &now, h, NULL, HISTORY_READ_BYTES, HISTORY_WRITE_BYTES);
	assert_well_formed(end_writing());
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(bar__parts_of_a_whole),
		CASE(chart__without_values),
		CASE(chart__points_and_gaps),
		CASE(chart__of_decades),
		CASE(spark__is_a_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
