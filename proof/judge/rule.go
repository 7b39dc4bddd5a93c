package judge

// The rules that a run can break, as a violation names them.
const (
	Overlap  = "overlap"  // two trusted holds that exclude each other
	Permits  = "permits"  // more permits trusted than there are
	MinHold  = "minhold"  // a hold that began before a min hold was over
	Order    = "order"    // a waiter that later callers passed
	Idle     = "idle"     // a wait for a name that nobody held
	Leader   = "leader"   // an election that names another than its leader
	Latch    = "latch"    // a latch that opened too early, or was set twice
	Token    = "token"    // a token that does not grow
	Release  = "release"  // a release that says what is not so
	Trust    = "trust"    // a lost lease that is good again
	Lost     = "lost"     // a hold lost without a reason, or whose loss was told late or wrongly
	Resource = "resource" // storage that loses an update, or refuses a trusted holder
	Stuck    = "stuck"    // a call that does not return
	Failed   = "failed"   // an error that nothing explains
	Left     = "left"     // a key or a goroutine left behind
)
