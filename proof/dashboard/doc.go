// Package dashboard tests package dashboard with HOLDFAST_PROOF=1, in a real browser on a real
// server: make proof PART=dashboard. With HOLDFAST_SCREENSHOTS=directory the browser's tests write
// pictures of the page there.
package dashboard
