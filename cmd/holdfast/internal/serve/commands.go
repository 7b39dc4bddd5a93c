// Package serve has the command that serves the dashboard, figures for Prometheus, and probes.
package serve

import "github.com/spf13/cobra"

// Commands returns the commands of the package, of a program of a version and a commit. Empty
// texts: they are unknown.
func Commands(version, commit string) []*cobra.Command {
	return []*cobra.Command{newServe(version, commit)}
}
