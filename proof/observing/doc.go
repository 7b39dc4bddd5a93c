// Package observing tests packages otelholdfast, promholdfast and profholdfast: their figures
// against counts of the same run, how many series they make, the spans, and who is in the profile.
package observing
