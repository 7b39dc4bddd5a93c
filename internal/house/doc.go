// Package house has the tests of what this repository keeps everywhere: the exported names, which
// package imports which, the words, the documents and the pages. They run in the repository's root.
package house
