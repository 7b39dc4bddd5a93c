package judge

// A Wait is a call that waits in a queue, from its call to its return. Times are readings of one
// clock.
type Wait struct{ Called, Returned int64 }

// PassedBy reports whether a later caller returned first. Calls that were sent and answered at
// nearly the same moment prove nothing: the later call must have begun so much later, and returned
// so much sooner.
func (w Wait) PassedBy(other Wait, later, sooner int64) bool {
	return other.Called > w.Called+later && other.Returned < w.Returned-sooner
}
