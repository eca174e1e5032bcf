/* An nbdkit plugin: serves a file as from a disc with one head, with the delays of such a disc. The parameters have the names of
   `sealift simulate --device`; the formulas are implemented here independently. The log has a line for each request: its offset
   and length, the milliseconds that it took, and whether the head moved. */

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* There is one head. */
#define THREAD_MODEL NBDKIT_THREAD_MODEL_SERIALIZE_ALL_REQUESTS

static double capacity, place, start_rate, end_rate, short_seek, third_seek, full_seek, turn, request, read_ahead, block;

static const struct {
	const char *name;
	double *value;
} parameters[] = {
	{"capacity_bytes", &capacity},
	{"place_bytes", &place},
	{"start_rate", &start_rate},
	{"end_rate", &end_rate},
	{"short_seek_ms", &short_seek},
	{"third_seek_ms", &third_seek},
	{"full_seek_ms", &full_seek},
	{"turn_ms", &turn},
	{"request_ms", &request},
	{"read_ahead_bytes", &read_ahead},
	{"block_bytes", &block},
};

static char *file, *log_file;
static int descriptor = -1;
static int64_t size;
static FILE *log_stream;
/* The position of the head, and the delay that is still to come, in milliseconds. */
static double head, debt;

static int disc_config(const char *key, const char *value)
{
	size_t i;

	if (!strcmp(key, "file"))
		return (file = nbdkit_realpath(value)) ? 0 : -1;
	if (!strcmp(key, "log"))
		return (log_file = nbdkit_absolute_path(value)) ? 0 : -1;
	for (i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
		if (!strcmp(key, parameters[i].name)) {
			*parameters[i].value = atof(value);
			return 0;
		}
	}
	nbdkit_error("there is no parameter %s", key);
	return -1;
}

static int disc_get_ready(void)
{
	struct stat stat;

	if (!file || !log_file || !(capacity > 0) || !(start_rate > 0) || !(block >= 1)) {
		nbdkit_error("file, log and the parameters of the device are needed");
		return -1;
	}
	descriptor = open(file, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0 || fstat(descriptor, &stat) < 0) {
		nbdkit_error("%s: %m", file);
		return -1;
	}
	size = stat.st_size;
	log_stream = fopen(log_file, "we");
	if (!log_stream) {
		nbdkit_error("%s: %m", log_file);
		return -1;
	}
	setvbuf(log_stream, NULL, _IOLBF, 0);
	head = floor(place / block) * block;
	return 0;
}

static void *disc_open(int readonly)
{
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t disc_get_size(void *handle)
{
	return size;
}

/* Bytes per second. At constant angular velocity, the rate grows with the radius, and the bytes within a radius with its square. */
static double rate(double at)
{
	double part = fmin(at / capacity, 1);

	return sqrt(start_rate * start_rate * (1 - part) + end_rate * end_rate * part);
}

static double seek(double from, double to)
{
	double way = fabs(to - from) / capacity;

	if (end_rate != start_rate)
		way = fabs(rate(to) - rate(from)) / fabs(end_rate - start_rate);
	if (way < 1. / 3)
		return turn / 2 + short_seek + (third_seek - short_seek) * sqrt(way * 3);
	return turn / 2 + third_seek + (full_seek - third_seek) * (way * 3 - 1) / 2;
}

static double transfer(double at, double bytes)
{
	return 1000 * bytes / ((rate(at) + rate(at + bytes)) / 2);
}

static void take(double milliseconds)
{
	struct timespec time, before, after;

	/* A sleep is never exact: if it is too long, the next one is shorter. */
	debt += milliseconds;
	if (debt < 1)
		return;
	time.tv_sec = debt / 1000;
	time.tv_nsec = fmod(debt, 1000) * 1e6;
	clock_gettime(CLOCK_MONOTONIC, &before);
	nanosleep(&time, NULL);
	clock_gettime(CLOCK_MONOTONIC, &after);
	debt -= (after.tv_sec - before.tv_sec) * 1e3 + (after.tv_nsec - before.tv_nsec) / 1e6;
}

static int disc_pread(void *handle, void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
	double start = floor((place + offset) / block) * block, end = ceil((place + offset + count) / block) * block;
	double milliseconds = request;
	int moved = 0;

	/* The block that was read last is still cached. */
	if (start < head && head - start <= block)
		start = head;
	if (start < end) {
		double gap = start - head, moving = gap == 0 ? 0 : seek(head, start);

		/* For a small gap, the head waits until the gap has passed. */
		if (gap > 0 && gap <= read_ahead && transfer(head, gap) <= moving) {
			moving = transfer(head, gap);
		} else {
			moved = gap != 0;
		}
		milliseconds += moving + transfer(start, end - start);
		head = end;
	}
	fprintf(log_stream, "%llu %u %.3f %d\n", (unsigned long long)offset, count, milliseconds, moved);
	take(milliseconds);
	return pread(descriptor, buffer, count, offset) == (ssize_t)count ? 0 : -1;
}

static struct nbdkit_plugin plugin = {
	.name = "disc",
	.config = disc_config,
	.get_ready = disc_get_ready,
	.open = disc_open,
	.get_size = disc_get_size,
	.pread = disc_pread,
};

NBDKIT_REGISTER_PLUGIN(plugin)
