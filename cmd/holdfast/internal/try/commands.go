// Package try has the commands that try the locks out: dev serves from memory, demo shows processes
// that share a lock. It also has the hidden commands of the processes that demo starts.
package try

import "github.com/spf13/cobra"

// Commands returns the commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newDemo(), newDev()}
}

// HiddenCommands returns the commands that the program starts itself with.
func HiddenCommands() []*cobra.Command { return []*cobra.Command{newKeeper(), newWorker()} }
