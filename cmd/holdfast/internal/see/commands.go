// Package see has the commands that show what the servers know and take nothing: ls, inspect, watch
// top, why and history show locks, quorum status and doctor show servers.
package see

import "github.com/spf13/cobra"

// Commands returns the commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newDoctor(), newHistory(), newInspect(), newLs(), newQuorum(), newTop(), newWatch(),
		newWhy()}
}
