package main

import (
	"slices"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/act"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/see"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/serve"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/try"
	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	own := ownVersion()
	root := &cobra.Command{
		Use:               "holdfast",
		Short:             "Distributed locks on Redis and Valkey",
		Version:           versionLine(), // --version
		SilenceErrors:     true,          // run prints them
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // newCompletion has exit codes
		Args:              cli.UnknownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetVersionTemplate("{{.Version}}\n")
	setHelp(root)
	// Help shows each group in the order of the alphabet.
	addGroup(root, "Hold a lock:", hold.Commands())
	addGroup(root, "See and act:", see.Commands(), act.Commands(), serve.Commands(own.number, own.commit))
	addGroup(root, "Try it:", try.Commands())
	root.AddCommand(newCompletion(), newVersion())
	root.AddCommand(&cobra.Command{Use: "urls", Short: "The forms of --redis and REDIS_URL"}) // a topic of help
	root.AddCommand(newMan())                                                                 // hidden
	root.AddCommand(try.HiddenCommands()...)
	readHelp(root, "")
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = knownTopic
			c.Long = "Print the help of a command or a topic, as its --help does."
		}
	}
	return root
}

// addGroup adds commands that help shows under one title.
func addGroup(root *cobra.Command, title string, packages ...[]*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range slices.Concat(packages...) {
		c.GroupID = title
		root.AddCommand(c)
	}
}

// knownTopic refuses help about an unknown command.
func knownTopic(help *cobra.Command, args []string) error {
	if about, rest, _ := help.Root().Find(args); len(rest) > 0 {
		return cli.UnknownCommand(about, rest)
	}
	return nil
}
