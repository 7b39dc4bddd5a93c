// Package quorum keeps names on independent masters.
package quorum
