// Command noise runs tests while the library, its adapters and the tests stand still for a moment wherever they like.
//
//	go -C proof run ./noise [-seed n] [-runs n] [-race] PACKAGE [REGEXP]
//
// PACKAGE is a directory of the repository, such as ./internal/quorum, and REGEXP chooses tests of it (all). Linux only.
//
// A test that is right on a quiet machine may assume an order that nobody promised: that what was sent first came first, that what a
// call leaves behind is over when it returns, that a request to the third server is not much slower than to the others. A busy
// machine shows it once in a thousand runs. Here the sources are rewritten, in an overlay of the go command and line by line as they
// were: at the beginning of a function, in each case of a select and behind an Unlock a goroutine may be held up, for real time,
// also where a test has a fake clock. The seed chooses one place in eight as slow; at these every third of the first visits takes 1
// to 256 ms, half of them below 20; all other places seldom do. One in sixteen requests to a server is late, and one in sixteen
// answers. A process in which all have stood still for 2 s and half of its time goes on. A run is not repeatable to the letter, but a
// seed that failed fails again soon.
//
// What fails is to be read: a bound of a second that many delays together have passed is no mistake of the test.
//
// The idea is noise making: Edelstein, Farchi, Goldin, Nir, Ratsaby, Ur, "Framework for testing multi-threaded Java programs", 2003.
package main
