/* A library for LD_PRELOAD: some sectors of the files in a folder cannot be read, as of scratched discs. A read ends before the first of
   them, and one that begins in such a sector fails with EIO. Which sectors these are depends on the file's name and the sector's number.

   UNREADABLE_IN     the folder, whose files exist when the program starts
   UNREADABLE_PARTS  how many of 1000 sectors cannot be read */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR 2048
#define MOST 256

static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_pread)(int, void *, size_t, off64_t);

static struct {
	dev_t device;
	ino_t inode;
	off_t size;
	uint64_t seed;
} files[MOST];
static size_t count;
static uint64_t parts;

static uint64_t mixed(uint64_t z)
{
	z += 0x9e3779b97f4a7c15;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static void add(int folder, const char *name)
{
	struct stat stat;
	uint64_t seed = 0xcbf29ce484222325;

	if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(stat.st_mode) || count == MOST)
		return;
	for (; *name; name++)
		seed = (seed ^ (unsigned char)*name) * 0x100000001b3;
	files[count].device = stat.st_dev;
	files[count].inode = stat.st_ino;
	files[count].size = stat.st_size;
	files[count].seed = mixed(seed);
	count++;
}

__attribute__((constructor)) static void begin(void)
{
	const char *folder = getenv("UNREADABLE_IN"), *wanted = getenv("UNREADABLE_PARTS");
	struct dirent *entry;
	DIR *dir;

	real_read = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	real_pread = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
	if (!folder || !wanted || !(dir = opendir(folder)))
		abort();
	parts = strtoull(wanted, NULL, 10);
	while ((entry = readdir(dir)))
		add(dirfd(dir), entry->d_name);
	closedir(dir);
}

/* Returns how many of these bytes come before the first sector that cannot be read. */
static size_t readable(int fd, size_t len, off_t offset)
{
	struct stat stat;
	size_t i;
	off_t sector, end;

	if (offset < 0 || fstat(fd, &stat) < 0)
		return len;
	for (i = 0; i < count; i++) {
		if (files[i].inode == stat.st_ino && files[i].device == stat.st_dev)
			break;
	}
	if (i == count || offset >= files[i].size)
		return len;
	end = files[i].size - offset > (off_t)len ? offset + (off_t)len : files[i].size;
	for (sector = offset / SECTOR; sector * SECTOR < end; sector++) {
		if (mixed(files[i].seed + (uint64_t)sector) % 1000 < parts)
			return sector * SECTOR > offset ? (size_t)(sector * SECTOR - offset) : 0;
	}
	return len;
}

static ssize_t failed(void)
{
	errno = EIO;
	return -1;
}

ssize_t read(int fd, void *buffer, size_t len)
{
	size_t before = readable(fd, len, lseek(fd, 0, SEEK_CUR));

	return before == 0 && len > 0 ? failed() : real_read(fd, buffer, before);
}

ssize_t pread64(int fd, void *buffer, size_t len, off64_t offset)
{
	size_t before = readable(fd, len, offset);

	return before == 0 && len > 0 ? failed() : real_pread(fd, buffer, before, offset);
}
