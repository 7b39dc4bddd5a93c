package steps

// A Step is one lock of the tutorials, the bug that is left in it, and the same fault with
// holdfast.
type Step struct {
	Title    string
	Idea     string   // of the lock, in the words of the tutorials
	Commands []string // as a client sends them
	Bug      string   // that is left
	Source   string   // the file of the naive lock in package naive
	Right    Place    // where holdfast has it right
	Pauses   bool     // the play stops a process, which not every system can

	naive, holdfast play
}

// A play directs a scene. It returns how to judge what happened, for when the scene has ended.
type play func(*scene) (judge func() verdict)

// A Place is where holdfast has it right.
type Place struct {
	File string // from the root of the repository
	Code string // as it stands there, within one line
	Why  string
}

// All returns the steps in their order.
func All() []Step {
	return []Step{
		timestampStep,
		expireStep,
		deleteStep,
		compareStep,
		uniqueStep,
		reentrantStep,
		watchdogStep,
		pollingStep,
		herdStep,
		unfairStep,
		readWriteStep,
		failoverStep,
		redLockStep,
		tokenStep,
	}
}
