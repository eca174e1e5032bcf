/* Runs a command with each read and write transferring only half of the requested bytes, as the kernel may do at any time.
   strace can make a call fail, but not transfer less. Only for x86-64. */

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static long length_register(long call)
{
	switch (call) {
	case SYS_read:
	case SYS_write:
	case SYS_pread64:
	case SYS_pwrite64:
		return offsetof(struct user_regs_struct, rdx);
	case SYS_sendfile:
		return offsetof(struct user_regs_struct, r10);
	case SYS_copy_file_range:
		return offsetof(struct user_regs_struct, r8);
	default:
		return -1;
	}
}

/* Registers to restore when the call returns: programs rely on the kernel to keep them. */
static struct {
	pid_t thread;
	long at;
	long length;
} held[256];

static void shorten(pid_t thread)
{
	/* For the loader, a short read means a broken library; this is the first call after it has read all libraries. */
	static int is_loaded;
	long call = ptrace(PTRACE_PEEKUSER, thread, offsetof(struct user_regs_struct, orig_rax), 0);
	is_loaded |= call == SYS_rseq;
	long at = length_register(call);
	if (at < 0 || !is_loaded)
		return;
	long length = ptrace(PTRACE_PEEKUSER, thread, at, 0);
	/* eventfd and similar files transfer eight bytes or none. */
	if (length <= 8)
		return;
	for (int i = 0; i < 256; i++) {
		if (held[i].thread == 0) {
			held[i].thread = thread;
			held[i].at = at;
			held[i].length = length;
			ptrace(PTRACE_POKEUSER, thread, at, length / 2 + 1);
			return;
		}
	}
}

static void put_back(pid_t thread)
{
	for (int i = 0; i < 256; i++) {
		if (held[i].thread == thread) {
			ptrace(PTRACE_POKEUSER, thread, held[i].at, held[i].length);
			held[i].thread = 0;
		}
	}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	pid_t child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execv(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	int status;
	waitpid(child, &status, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	ptrace(PTRACE_SYSCALL, child, 0, 0);
	for (;;) {
		pid_t thread = waitpid(-1, &status, __WALL);
		if (thread < 0)
			return 2;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (thread == child)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			continue;
		}
		int deliver = 0;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			struct __ptrace_syscall_info info;
			if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0)
				continue;
			if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
				shorten(thread);
			else
				put_back(thread);
		} else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
			deliver = WSTOPSIG(status);
		}
		ptrace(PTRACE_SYSCALL, thread, 0, deliver);
	}
}
