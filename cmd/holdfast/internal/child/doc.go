// Package child runs a command for somebody who must be able to end it, whole and at a given moment: in a process group of
// its own, which is the foreground group where there is a terminal, and no longer than its parent lives.
//
// # On Unix
//
// Signals go to the group, so that they reach what the command started too. Out of reach is what left the group: a
// daemon, a job of an interactive shell, anything started with setsid.
//
// On Linux the system kills the command (not what the command started) when this process dies, however it dies. That
// signal is tied to the thread that started the command, so that thread does nothing else and waits for the command.
// Elsewhere the command outlives a parent that was killed with -9.
//
// # A terminal
//
// The command's group gets the terminal before its program begins, if ours has it; so Ctrl-C and a new window size reach
// the command without us. Not, however, where our output is a pipe: then we are most likely part of a pipeline, whose
// other members, a pager for instance, need the terminal as well. There, and in the background, the command
// gets the terminal when it asks for it: the system stops a group that reads from a terminal that is not its own,
// and we see that.
//
// When the command is stopped (Ctrl-Z), the whole group is stopped, we give the terminal back, and stop as well, so that the
// shell takes over. When the shell continues us, whoever called Follow decides whether the command goes on.
//
// # Elsewhere
//
// There are no groups and no signals but the end: only the command itself is ended, at once.
package child
