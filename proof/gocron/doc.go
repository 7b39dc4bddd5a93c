// Package gocron tests package gocronholdfast with real schedulers, an hour of ticks on a fake
// clock, and hosts whose clocks differ.
package gocron
