// Package lockinfo has the facts about locks that a client of package holdfast tells operators: who
// holds a name, who waits for it, and what keeps others out.
//
//	info, err := client.Inspect(ctx, "order:42")
//	...
//	if hold, ok := info.Holder(); ok {
//		fmt.Println(info.Name, info.State(), hold.Label, hold.Since)
//	}
//
// The facts are for people, and for programs that show them. Nothing may be decided by them, as
// they may be over when they arrive. Values may be shared and copied; nobody changes them.
//
// # JSON
//
// Each type has its form in JSON, which encoding/json writes and reads. It is the form of all that
// the command holdfast prints and that the dashboard's page reads; docs/json.md is its contract. A
// Document adds the Version of the form.
//
// A value that was written and read is the same value, with these exceptions:
//
//   - Bytes that are no UTF-8 are U+FFFD in labels, owners and hosts. Names keep their bytes.
//   - Times are in UTC. Durations are rounded to microseconds, as servers tell them.
//   - An error has its text alone.
//   - A list that is empty is nil.
//
// # Differences
//
// Changes returns the differences between two snapshots of all names, and Compare those between two
// snapshots of one name. A hold that begins and ends between two snapshots is not seen.
package lockinfo
