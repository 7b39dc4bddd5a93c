// Package act has the commands of an operator against what others do: ask asks a holder to let go,
// break ends its hold, evict ends a wait, and deadlocks finds callers that wait for each other.
package act

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Break ends the hold of another process.
type Break struct {
	cli.Connection
	cli.Output
	Name  string
	Token int64  // 0: show the holds, and ask
	given bool   // Token is no default
	Force bool   // let others in at once
	Yes   string // the name, in place of the question of Force
	In    io.Reader
}

// Validate refuses bad arguments.
func (b *Break) Validate() error {
	var c cli.Checklist
	cli.CheckName(&c, b.Name)
	c.Check(b.Token > 0 || b.Token == 0 && !b.given, "--token %d: it must be a token that inspect shows", b.Token)
	c.Check(b.Yes == "" || b.Yes == b.Name, "--yes %q: it must be NAME, which is %q", b.Yes, b.Name)
	c.Check(b.Yes == "" || b.Force, "--yes %q: it answers the question of --force, which is not given", b.Yes)
	c.Check(!b.Force || !b.IsQuorum(), "--force: the masters of a quorum cannot end a hold by force at one moment")
	b.Connection.Check(&c)
	return c.Err()
}

func (b *Break) needsAnswer() bool { return b.Token == 0 || b.Force && b.Yes == "" }

// Run breaks the hold with the token, after a question if one must be asked. Without an answer
// nothing is done.
func (b *Break) Run(ctx context.Context) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if b.needsAnswer() && (cli.Terminal(b.In) == nil || cli.Terminal(b.Out) == nil) {
		if b.Token == 0 {
			return cli.Usagef("no --token: without a terminal nobody can be asked which hold of %q to break; this prints the tokens: %s",
				b.Name, "holdfast inspect -o json "+quoteForShell(b.Name)+" | jq '.holds[].token'")
		}
		return cli.Usagef("--force: without a terminal nobody can be asked, and --yes %q must say that two may hold then",
			b.Name)
	}
	client, end, err := b.NewClient(holdfast.Config{Label: cli.Operator()})
	if err != nil {
		return err
	}
	defer end()
	hold := lockinfo.Hold{Token: b.Token}
	if b.needsAnswer() {
		if hold, err = b.askForHold(ctx, client); err != nil {
			return err
		}
	}
	call := client.Break
	if b.Force {
		call = client.ForceBreak
	}
	switch err := call(ctx, b.Name, hold.Token); {
	case errors.Is(err, holdfast.ErrNotHeld):
		return cli.Exitf(cli.ExitFailed, "nothing was broken: %q has no hold with the token %d (any more)", b.Name,
			hold.Token)
	case err != nil:
		return b.Failure(err)
	}
	after := "others get in at once"
	if !b.Force {
		after = b.remainderText(ctx, client, hold.Token)
	}
	fmt.Fprintf(b.Out, "broken: %s, token %d; %s\n", show.Text(b.Name), hold.Token, after) // the exit code tells it too
	return nil
}

// remainderText says what frees the name after a break, and when that is at the latest.
func (b *Break) remainderText(ctx context.Context, client *holdfast.Client, token int64) string {
	info, err := client.Inspect(ctx, b.Name)
	if err != nil {
		return "others get in when its holder has stopped, or else when its TTL is over"
	}
	for _, h := range info.Holds {
		switch {
		case h.State != lockinfo.StateBroken || token < h.Token || h.LastToken < token:
		case show.IsTicket(h):
			return fmt.Sprintf("a ticket has it: others get in after holdfast release --ticket, or else in %s", show.Age(h.Remaining))
		default:
			return fmt.Sprintf("others get in when its holder has stopped, or else in %s", show.Age(h.Remaining))
		}
	}
	if info.Holders > len(info.Holds) {
		return "others get in when its holder has stopped"
	}
	return "its holder has stopped, and others get in"
}

func quoteForShell(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// askForHold shows what is there, and asks which hold is meant and whether to break it.
func (b *Break) askForHold(ctx context.Context, client *holdfast.Client) (lockinfo.Hold, error) {
	info, err := client.Inspect(ctx, b.Name)
	if err != nil {
		return lockinfo.Hold{}, b.Failure(err)
	}
	if err := b.Page().Detail(info); err != nil {
		return lockinfo.Hold{}, err
	}
	if len(info.Holds) == 0 {
		return lockinfo.Hold{}, cli.Exitf(cli.ExitFailed, "nothing was broken: nobody holds %q", b.Name)
	}
	answers := bufio.NewReader(b.In)
	token, err := b.chooseToken(answers, info)
	if err != nil {
		return lockinfo.Hold{}, err
	}
	for _, h := range info.Holds {
		if h.Token <= token && token <= h.LastToken {
			return h, b.confirmBreak(answers, h)
		}
	}
	if info.Holders == len(info.Holds) {
		return lockinfo.Hold{}, cli.Exitf(cli.ExitFailed, "nothing was broken: none of these holds has the token %d", token)
	}
	hidden := lockinfo.Hold{Token: token} // it may be of a hold that is not shown
	return hidden, b.confirmBreak(answers, hidden)
}

// chooseToken is the token that was given, that of the only hold, or the answer to a question.
func (b *Break) chooseToken(answers *bufio.Reader, info lockinfo.Info) (int64, error) {
	switch {
	case b.Token != 0:
		return b.Token, nil
	case len(info.Holds) == 1:
		return info.Holds[0].Token, nil
	}
	which := "Which hold is to be broken? Type its token: "
	if more := info.Holders - len(info.Holds); more > 0 {
		which = fmt.Sprintf("%d more holds are not shown; logs and HOLDFAST_TOKEN may have their tokens.\n%s", more, which)
	}
	answer, err := b.readAnswer(answers, which)
	if err != nil {
		return 0, err
	}
	token, err := strconv.ParseInt(answer, 10, 64)
	if err != nil {
		return 0, errNothingBroken
	}
	return token, nil
}

// confirmBreak asks whether to break a hold: with yes or no, or with the name if two may hold then.
func (b *Break) confirmBreak(answers *bufio.Reader, hold lockinfo.Hold) error {
	of := "of " + show.Text(hold.Label)
	if hold.State == "" {
		of = "which is not shown"
	}
	question, want := fmt.Sprintf("Break the hold with token %d, %s? [y/N] ", hold.Token, of), []string{"y", "yes"}
	if b.Force {
		if b.Yes != "" {
			return nil
		}
		question = fmt.Sprintf("--force lets others in at once, although the holder may still write: two may hold then.\nType the name to break the hold with token %d, %s: ", hold.Token, of)
		want = []string{b.Name, show.Text(b.Name)}
	}
	answer, err := b.readAnswer(answers, question)
	if err != nil {
		return err
	}
	for _, w := range want {
		if answer == w || !b.Force && strings.EqualFold(answer, w) {
			return nil
		}
	}
	return errNothingBroken
}

var errNothingBroken = cli.ExitWith(cli.ExitFailed, errors.New("nothing was broken"))

// readAnswer asks, and reads a line. The end of the input is no answer.
func (b *Break) readAnswer(answers *bufio.Reader, text string) (string, error) {
	if _, err := io.WriteString(b.Out, "\n"+text); err != nil {
		return "", err
	}
	line, err := answers.ReadString('\n')
	if err != nil {
		_, _ = fmt.Fprintln(b.Out)
		return "", errNothingBroken
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func newBreak() *cobra.Command {
	b := &Break{}
	cmd := &cobra.Command{
		Use:                   "break NAME [--token N]",
		Short:                 "End the hold of another process, and let others in then",
		DisableFlagsInUseLine: true,
		Args:                  cli.OneName(&b.Name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cli.OutliveReaders()
			b.given = cmd.Flags().Changed("token")
			b.In, b.Out, b.Err = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return b.Run(cmd.Context())
		},
	}
	b.AddNameFlags(cmd)
	cmd.Flags().Int64Var(&b.Token, "token", 0, "the fencing token `N` of the hold, or any other of its grant")
	cmd.Flags().BoolVar(&b.Force, "force", false, "do not wait for the holder to stop: two may hold then")
	cmd.Flags().StringVar(&b.Yes, "yes", "", "`NAME` once more, in place of the question of --force")
	return cmd
}

// waiterForm is the form of the id of a waiter.
var waiterForm = regexp.MustCompile(`^[a-z2-7]{16}$`)

// Evict takes a waiter out of a queue.
type Evict struct {
	cli.Connection
	Name   string
	Waiter string
	Out    io.Writer
}

// Run takes the waiter out.
func (e *Evict) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckName(&c, e.Name)
	c.Check(waiterForm.MatchString(e.Waiter),
		"WAITER %q: it must be one that inspect shows, of 16 characters a-z and 2-7", e.Waiter)
	c.Check(!e.IsQuorum(), "a quorum has no queue: its waiters ask each for itself")
	client, end, err := e.Open(c, holdfast.Config{Label: cli.Operator()})
	if err != nil {
		return err
	}
	defer end()
	switch err := client.Evict(ctx, e.Name, e.Waiter); {
	case errors.Is(err, holdfast.ErrNotWaiting):
		return cli.Exitf(cli.ExitFailed, "no waiter %s is in the queue of %q: it holds, or has left", e.Waiter, e.Name)
	case err != nil:
		return e.Failure(err)
	}
	fmt.Fprintf(e.Out, "taken out of the queue of %s: %s\n", show.Text(e.Name), e.Waiter) // the exit code tells it too
	return nil
}

func newEvict() *cobra.Command {
	e := &Evict{}
	cmd := &cobra.Command{
		Use:                   "evict NAME WAITER",
		Short:                 "Take a waiter out of a queue",
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("%s takes a NAME and a WAITER, got %s", cmd.CommandPath(), cli.CountArgs(args))
			}
			e.Name, e.Waiter = args[0], args[1]
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cli.OutliveReaders()
			e.Out = cmd.OutOrStdout()
			return e.Run(cmd.Context())
		},
	}
	e.Connection.AddFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteWaiters(&e.Connection)
	return cmd
}

// Commands returns the commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newAsk(), newBreak(), newDeadlocks(), newEvict()}
}
