// Package mutant breaks a copy of the library on purpose, to show that the checks of the proof
// notice.
//
// A Mutant is a few replacements in the sources, and the Check that must fail for it. The text to
// replace must occur exactly once. If the source has changed so that a patch does not fit, the
// tests of this package fail, and command table refuses to start. The copy is a directory with the
// modules that the checks need. A changed script gets its new digest there.
//
// A Check is one test, by its full name, or the torture with one rule of the history. It runs in
// the broken copy, where it must fail. Nothing else counts as caught:
//
//   - a copy, a script or a test that does not compile, or a script that ends with a mistake in
//     Lua;
//   - a failure of another test, or of the test program beside its tests;
//   - a test that does not exist, or is skipped;
//   - a test that is stuck: it was still running when its time was over. The table tells it apart
//     from one that passed.
//
// Each check must also pass where nothing is broken.
//
// A check in real time or with random input may catch a mutant by luck. So Try can run a check
// several times, each time in a new process. The mutant is caught if the check fails every time.
// RUNS=5 make mutants does so for all mutants. Checks on a fake clock run as often: they are quick,
// and goroutines run in any order there too. A check that misses now and then does not wait for the
// state that it is about. The test is to be mended, not tried again.
package mutant
