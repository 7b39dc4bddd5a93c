// Package serve has the command that serves the dashboard, figures for Prometheus, and probes.
package serve

import "github.com/spf13/cobra"

// Commands returns the commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newServe()}
}
