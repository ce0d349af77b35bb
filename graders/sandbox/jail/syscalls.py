"""Numbers of the system calls that the sandbox speaks of, on the two architectures it knows.

A call that is not in `ALLOWED`, nor in one of the tables of `policy`, is refused and counted.
"""

import os

#: The AUDIT_ARCH values that seccomp reports.
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

#: Calls that are allowed with any argument: they reach files only as far as Landlock lets them.
#: Name, number on x86_64, number on aarch64; `-` where there is none.
_ALLOWED = """
read 0 63; write 1 64; readv 19 65; writev 20 66; pread64 17 67; pwrite64 18 68; preadv 295 69;
pwritev 296 70; lseek 8 62; close 3 57; close_range 436 436; dup 32 23; dup2 33 -; dup3 292 24;
pipe 22 -; pipe2 293 59; poll 7 -; ppoll 271 73; select 23 -; pselect6 270 72; epoll_create 213 -;
epoll_create1 291 20; epoll_ctl 233 21; epoll_wait 232 -; epoll_pwait 281 22; eventfd2 290 19;
sendfile 40 71; copy_file_range 326 285; fsync 74 82; fdatasync 75 83; ftruncate 77 46;
fallocate 285 47; fadvise64 221 223; stat 4 -; fstat 5 80; lstat 6 -; newfstatat 262 79;
statx 332 291; access 21 -; faccessat 269 48; faccessat2 439 439; getdents 78 -; getdents64 217 61;
readlink 89 -; readlinkat 267 78; getcwd 79 17; chdir 80 49; fchdir 81 50; mkdir 83 -;
mkdirat 258 34; rmdir 84 -; unlink 87 -; unlinkat 263 35; rename 82 -; renameat 264 38;
renameat2 316 276; umask 95 166; statfs 137 43; fstatfs 138 44; mmap 9 222; mremap 25 216;
munmap 11 215; mprotect 10 226; madvise 28 233; msync 26 227; brk 12 214; exit 60 93;
exit_group 231 94; getpid 39 172; getppid 110 173; gettid 186 178; getuid 102 174; geteuid 107 175;
getgid 104 176; getegid 108 177; getgroups 115 158; getresuid 118 148; getresgid 120 150;
getpgrp 111 -; uname 63 160; sysinfo 99 179; times 100 153; getrusage 98 165; getrlimit 97 163;
setrlimit 160 164; wait4 61 260; waitid 247 95; set_tid_address 218 96; set_robust_list 273 99;
rseq 334 293; futex 202 98; sched_yield 24 124; sched_getaffinity 204 123; sched_getparam 143 121;
sched_getscheduler 145 120; sched_get_priority_max 146 125; sched_get_priority_min 147 126;
nanosleep 35 101; clock_nanosleep 230 115; clock_gettime 228 113; clock_getres 229 114;
gettimeofday 96 169; time 201 -; setitimer 38 103; getitimer 36 102; alarm 37 -; pause 34 -;
rt_sigaction 13 134; rt_sigprocmask 14 135; rt_sigreturn 15 139; rt_sigpending 127 136;
rt_sigtimedwait 128 137; rt_sigsuspend 130 133; sigaltstack 131 132; restart_syscall 219 128;
getrandom 318 278; getcpu 309 168
"""

#: Calls whose arguments decide; see `policy`.
_DEPENDS = """
open 2 -; openat 257 56; clone 56 220; kill 62 129; tgkill 234 131; prlimit64 302 261;
prctl 157 167; fcntl 72 25; ioctl 16 29
"""

#: Calls that ordinary libraries try and can do without: refused without a word.
_QUIET = """
clone3 435 435; openat2 437 437; epoll_pwait2 441 441; membarrier 324 283; futex_waitv 449 449;
mincore 27 232; flock 73 32; chmod 90 -; fchmod 91 52; fchmodat 268 53; fchmodat2 452 452;
utime 132 -; utimes 235 -; futimesat 261 -; utimensat 280 88; getxattr 191 8; lgetxattr 192 9;
fgetxattr 193 10; listxattr 194 11; llistxattr 195 12; flistxattr 196 13; get_mempolicy 239 236;
getpriority 140 141; arch_prctl 158 -; sendmsg 46 211
"""

#: Names for reports of what was refused; a number that is not here is reported as a number.
_REFUSED = """
socket 41 198; socketpair 53 199; connect 42 203; bind 49 200; listen 50 201; accept 43 202; accept4
288 242; sendto 44 206; recvfrom 45 207; recvmsg 47 212; sendmmsg 307 269; fork 57 -; vfork 58 -;
execve 59 221; execveat 322 281; ptrace 101 117; process_vm_readv 310 270; process_vm_writev 311
271; kcmp 312 272; pidfd_open 434 434; pidfd_getfd 438 438; pidfd_send_signal 424 424; tkill 200
130; rt_sigqueueinfo 129 138; rt_tgsigqueueinfo 297 240; setpgid 109 154; setsid 112 157;
setpriority 141 140; sched_setaffinity 203 122; sched_setscheduler 144 119; sched_setattr 314 274;
ioprio_set 251 30; shmget 29 194; shmat 30 196; msgget 68 186; semget 64 190; mq_open 240 180;
memfd_create 319 279; memfd_secret 447 447; userfaultfd 323 282; io_setup 206 0; io_uring_setup 425
425; bpf 321 280; perf_event_open 298 241; keyctl 250 219; add_key 248 217; request_key 249 218;
inotify_init1 294 26; inotify_add_watch 254 27; fanotify_init 300 262; name_to_handle_at 303 264;
open_by_handle_at 304 265; mount 165 40; umount2 166 39; chroot 161 51; pivot_root 155 41; unshare
272 97; setns 308 268; personality 135 92; mknod 133 -; mknodat 259 33; link 86 -; linkat 265 37;
symlink 88 -; symlinkat 266 36; truncate 76 45; chown 92 -; fchown 93 55; fchownat 260 54; setxattr
188 5; fsetxattr 190 7; setuid 105 146; setgid 106 144; setresuid 117 147; setgroups 116 159; capset
126 91; seccomp 317 277; mlock 149 228; mlockall 151 230; splice 275 76; vmsplice 278 75; sync 162
81; syncfs 306 267; timer_create 222 107; timerfd_create 283 85; signalfd4 289 74;
landlock_create_ruleset 444 444; landlock_add_rule 445 445; landlock_restrict_self 446 446; creat 85
-
"""


def machine() -> str:
    """This machine's architecture, as in `AUDIT_ARCH`."""
    return os.uname().machine


def _numbers(table: str, arch: str) -> dict[str, int]:
    column = 1 + list(AUDIT_ARCH).index(arch)
    rows = [entry.split() for entry in table.replace("\n", " ").split(";")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def allowed(arch: str) -> dict[str, int]:
    """Calls that are always allowed."""
    return _numbers(_ALLOWED, arch)


def numbers(arch: str) -> dict[str, int]:
    """The numbers of every call that this file names."""
    return _numbers(";".join((_ALLOWED, _DEPENDS, _QUIET, _REFUSED)), arch)
