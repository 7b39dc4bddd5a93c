// Package dashboard is a web page that shows the locks of a server while they change: who holds,
// who waits, and why. It is an http.Handler, which a program mounts where it likes:
//
//	mux.Handle("/locks/", http.StripPrefix("/locks", dashboard.Handler(client, nil)))
//
// All its URLs are relative, so any prefix will do. The page is embedded: it needs no build step
// and loads nothing from elsewhere.
//
// # What it costs
//
// The page has one stream of events. While at least one page is open, Client.List reads all names,
// about once a second however many pages there are: a poll ends 0.95 s after the one before began,
// so a change is on the page within a second. It reads for at most about a quarter of the time, as
// it pauses three times as long as the last poll took. Client.Ready is asked every 5 s, and of a
// quorum Client.Quorum. Nothing is read while no page is open, and a page that is hidden closes its
// stream. A page gets the whole list first, and then the differences.
//
// Memory is bounded. All streams share the list: the first 20,000 names, of at most 64 MiB
// together, and during a poll the list before too. The page says how many names it does not show.
// There are at most 100 streams, and each keeps what it is sending: some 64 KiB of rows, and of one
// poll at most 1,000 changes of 1 MiB together. Of other answers, four are made or sent at a
// time. A page that does not read for 15 s is closed.
//
// # What it shows
//
//   - All names, with trouble first, with search, order, and filters by trouble, kind, host,
//     waiters and age, which the URL has. For a semaphore it
//     shows its use, and for an election its leader.
//   - Of one name its holds, its queue, and what each master of a quorum says.
//   - Why a name is waited for: its holders, what they wait for themselves, and so on to the cause,
//     as lockinfo.NewChain tells it. And all such waits as a picture, of 60 names at most. The
//     list names the root causes, and in each row the one that it is behind: of the longest waits
//     first, as far as 20,000 holds and waits go.
//   - Who held a name, as bars: since the page was opened, and before that as far as clients with
//     Config.History wrote it, the last 200 entries.
//   - Which line of code holds a name, when that is asked for, of clients with Config.Remote.
//   - The changes that were seen since the page was opened. They are differences between two polls,
//     so a hold that begins and ends between two polls is not seen.
//   - All that one process holds and waits for.
//   - Whether the servers are ready, and which masters of a quorum count, and why others do not.
//   - Cycles of the last poll. And deadlocks, when they are asked for: at most one search runs, and
//     all who ask share it.
//
// # Who may do what
//
// A client that reaches the Handler may read. A program that wants fewer readers wraps it. The
// names, labels and hosts of all processes are there to be read.
//
// Which calls hold a name is asked by a POST of the page itself, for anybody who may read. It sends
// a message to the holders, and takes what Client.Stacks takes of the client.
//
// Nobody may change anything, unless Options.Authorize says so of a request. Then a hold can be
// broken by Client.Break, and a waiter evicted by Client.Evict, by a POST that
//
//   - comes from the same origin, as Sec-Fetch-Site or else Origin says,
//   - carries a secret that only a page of the same origin can have read, and
//   - has the name as a person typed it.
//
// Names and labels are texts of others. The page inserts them as text, never as markup, and shows
// characters that are invisible or change the direction of writing as escapes. The
// Content-Security-Policy allows the embedded script and style, and nothing else.
//
// # Requests
//
//	GET  ./             the page; also style.css, icon.svg and its scripts
//	GET  ./events       the stream: events "hello" and "update", in parts
//	GET  ./lock         ?name=: a name as the last poll found it
//	GET  ./history      ?name=: the newest entries of its history, read in at most 2 s
//	GET  ./process      ?host=&pid=: what a process holds and waits for, as the last poll found it
//	GET  ./deadlocks    looks for deadlocks
//	POST ./break        {"name", "token", "typed"}
//	POST ./stacks       ?name=: which calls hold a name, as their processes answer within 1 s
//	POST ./evict        {"name", "waiter", "typed"}
//
// The facts in the JSON are values of package lockinfo. The requests are for the page, and may
// change with it.
package dashboard
