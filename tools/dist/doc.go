// Package dist makes the files of a release and looks into each of them:
//
//	make proof PART=release
//
// It has tests alone, which run with HOLDFAST_PROOF=1.
package dist
