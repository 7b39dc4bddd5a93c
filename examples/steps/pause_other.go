//go:build !unix

package main

import "os"

// No signal stops a process here or continues it: step 14 cannot be judged.
var stopSignal, continueSignal os.Signal = os.Interrupt, os.Interrupt
