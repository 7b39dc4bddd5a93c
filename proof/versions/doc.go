// Package versions runs clients of this commit beside those of an earlier one, in processes of
// their own, on the same names of real servers. Its tests run with
// HOLDFAST_PROOF=1.
//
// The earlier commit is that of the last tag, or until there is one the commit that const untagged
// names. HOLDFAST_EARLIER takes another. Its files come from the history of this clone. A test
// builds two programs from them: the worker (package proof/workload), and the agent of this
// package, which asks for nothing but the public API. So a commit may rename what it likes. The
// JSON of workload.Plan, of history.Record and of the agent must stay.
package versions
