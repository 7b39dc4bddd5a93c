// Package steps shows, step by step, how the distributed locks of the tutorials fail, and what
// holdfast does in the same case. It is the command "holdfast steps"; docs/steps.md is its text.
//
// A Step is one lock of the tutorials with the bug that is left in it. The package naive has these
// locks, one in a file, as tutorials write them. A step is played twice: with the naive lock, where
// the bug must be seen to happen, and with holdfast, where it must not. Both plays have the same
// fault.
//
// A play is a function of this package that directs a scene. The scene has servers, networks and
// processes:
//
//   - A server is in the memory of the parent process, on a free loopback port. So a step needs
//     nothing but this program, and is the same everywhere.
//   - A network is a proxy between one process and one server. It holds requests or answers back,
//     loses an answer, goes silent, or leads to another server.
//   - A process is a child process: this program again, with a hidden command. It has one lock,
//     takes orders on its standard input and reports on its standard output, in JSON. While it is
//     inside the lock it works: every few milliseconds it asks its lock whether it may go on, and
//     stops when the lock says no. A naive lock rarely knows.
//
// Faults are injected, never hoped for: the play waits for an event, such as a request that a
// network holds back, and does the next thing then. No play depends on which of two processes is
// faster.
//
// A verdict is computed from the reports. A tenure is the time from a process's entry until the
// last time at which its lock let it work, by the wall clock, which all processes of one host
// share. Where a verdict says that two processes were inside together, two tenures overlapped for
// the time that it prints.
//
// Run returns nil only if the bug was seen and the fix held. A step that cannot be judged, as a
// process or a server failed, or as its time is over, returns the first failure. The scene
// remembers that failure, and everything that the play does afterwards returns at once, so that a
// play has no branches for failures. In each case all processes, networks and servers of the scene
// are gone when Run returns. A child process ends with its standard input, however the parent ends;
// an interrupt is left to the parent.
package steps
