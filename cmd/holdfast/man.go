package main

import (
	"os"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the pages of man into a directory",
		Long: `Write a page of man for each command into a directory that is there. SOURCE_DATE_EPOCH sets the date
of the pages.`,
		Hidden: true, // for packagers
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("got %s, want one directory: holdfast man DIR", cli.CountArgs(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return cli.Usagef("DIR %q: it must be a directory that is there", args[0])
			}
			root := newRoot()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: root.Version, Manual: "holdfast"}
			return doc.GenManTree(root, header, args[0])
		},
	}
}
