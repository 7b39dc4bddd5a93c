// Package mutant breaks a copy of the library on purpose, to show that the checks of the proof notice.
//
// A Mutant is a few replacements in the sources, and the Check that must fail for it. Each text must match exactly once: one
// that matches no more, because the source was changed, fails the tests instead of proving nothing. The copy is a
// directory with the modules that the checks need; a changed script gets its new digest there. Then the check runs in
// the copy: one test, by its full name, or the torture with one rule of the history. It must fail. A copy that
// does not compile, or a failure of anything else, does not count as caught; and each check must pass where nothing is broken.
package mutant
