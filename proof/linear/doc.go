// Package linear checks a history against a model of each name, with porcupine: whether there is
// one order of all that happened in which every lock was free for the caller that got it.
//
// The model knows each hold: whose entry it is, its owner, and whether it reads, writes or takes
// how many permits. It knows how many permits there are and the largest tokens. Package judge says
// which holds exclude each other and which tokens grow. A lock takes effect at one moment between
// its call and its return, which the checker looks for. The end of a hold is no moment to look for:
// a lease excludes others until it is released, lost or not trusted any more, so there is no
// earlier one, and a later one helps no contender.
//
// A lock that was not answered holds nothing.
package linear
