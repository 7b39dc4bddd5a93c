// Package simulate runs hours of trouble in parts of a second.
package simulate
