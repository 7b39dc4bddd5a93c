// Package act has the commands of an operator against what others do: ask asks a holder to let go,
// break ends its hold, evict ends a wait, and deadlocks finds callers that wait for each other.
package act

import "github.com/spf13/cobra"

// Commands returns the commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newAsk(), newBreak(), newDeadlocks(), newEvict()}
}
