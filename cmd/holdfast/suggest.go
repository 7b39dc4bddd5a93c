package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// meant is what to say of a flag that does not exist: which one is near, if one is.
func meant(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	name, best, least := unknown.GetSpecifiedName(), "", 3
	if len(name) < 2 {
		return ""
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); d < least && !f.Hidden {
			best, least = f.Name, d
		}
	})
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean --%s?", best)
}

// withoutURL is an error about a flag without the URL that was given to it, which may hold a
// password.
func withoutURL(err error) error {
	text, _, found := strings.Cut(err.Error(), "://")
	if !found {
		return err
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return fmt.Errorf("a URL is no value of the flag --%s", invalid.GetFlag().Name)
	}
	return errors.New(text + "://...")
}

// nearest are the commands whose names are near a word, the nearest ones only.
func nearest(cmd *cobra.Command, word string) (names []string) {
	least := 2
	for _, c := range cmd.Commands() {
		d := distance(word, c.Name())
		if c.Hidden || d > least {
			continue
		}
		if d < least {
			names, least = nil, d
		}
		names = append(names, c.Name())
	}
	return names
}

// distance is how many letters must be changed, put in, left out or swapped with the next to make one word of another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j-1]+change, rows[i][j-1]+1, rows[i-1][j]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
