// Package observing tests packages otelholdfast and promholdfast: their figures against counts of
// the same run, how many series they make, and the spans.
package observing
