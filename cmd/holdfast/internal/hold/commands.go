// Package hold has the commands that hold a lock or wait for one. run, elect, once and shards hold
// it while another command runs. acquire leaves it to a ticket, which renew, release and check
// take. wait and latch take nothing.
//
// Each command is a struct, which is the command without flags. The function beside it makes the
// cobra command that fills the struct.
package hold

import "github.com/spf13/cobra"

// Commands returns the commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newAcquire(), newCheck(), newElect(), newLatch(), newOnce(), newRelease(), newRenew(),
		newRun(), newShards(), newWait()}
}
