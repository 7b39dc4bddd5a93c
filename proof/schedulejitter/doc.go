// Command schedulejitter runs tests while goroutines of the library, its adapters and the tests are
// held up for a moment at random places.
//
//	go -C proof run ./schedulejitter [-seed n] [-runs n] [-race] PACKAGE [REGEXP]
//
// PACKAGE is a directory of the repository, such as ./internal/quorum, and REGEXP chooses tests of
// it (all). Linux only.
//
// A test that is right on a quiet machine may assume an order that nothing promises. It may assume
// that the first request arrives first. It may assume that the work which a call leaves behind is
// over when the call returns, or that a request to the third server is not much slower than to the
// others. A busy machine shows the mistake once in a thousand runs.
//
// The command rewrites the sources, in an overlay of the go command; each line stays where it was.
// At the beginning of a function, in each case of a select and behind an Unlock, a goroutine may be
// held up. It is held up for real time, also where a test has a fake clock. The seed chooses one
// place in eight as slow. At these, every third of the first visits takes 1 to 256 ms, half of them
// below 20; all other places seldom do. One in sixteen requests to a server is late, and one in
// sixteen answers. A process whose goroutines were held up for 2 s and half of its time goes on
// undisturbed. A run is not repeatable to the letter, but a seed that failed fails again soon.
//
// A failure must be read: if many delays together pass a bound of a second, the test is not wrong.
//
// The idea is noise making: Edelstein, Farchi, Goldin, Nir, Ratsaby, Ur, "Framework for testing
// multi-threaded Java programs", 2003.
package main
