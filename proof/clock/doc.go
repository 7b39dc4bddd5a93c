// Package clock tests whole clients on a fake clock: the library, its adapter for go-redis, the
// scripts, and miniredis, which goes by the same clock. All times in these tests are exact. It has
// tests alone.
package clock
