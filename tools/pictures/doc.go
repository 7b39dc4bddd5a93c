// Command pictures makes the pictures of terminals in docs/: the demo and "holdfast top", as they
// really run, each on a terminal of tmux. The screen of the terminal becomes an SVG: text in the
// reader's own fixed-width font, on a dark ground that looks the same on a light and a dark page.
//
//	go run ./tools/pictures DIRECTORY
//
// The pictures differ from run to run by times and tokens. "make pictures" runs this. The drawing
// of a lease is kept by hand: a test of internal/engine compares its times. The pictures of the
// dashboard come from package proof/dashboard.
package main
