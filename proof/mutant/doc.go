// Package mutant breaks a copy of the library on purpose, to show that the checks of the proof notice.
//
// A Mutant is a few replacements in the sources. Each must match exactly once: one that matches no more, because the
// source was changed, fails the tests instead of proving nothing. The copy is a directory with the modules that the
// workload needs; a changed script gets its new digest there. Then the workload's own test runs in the copy, and must
// fail, with a violation of the rule that the mutant should break. A copy that does not compile, or a workload that
// fails in another way, does not count as caught.
package mutant
