package judge

import "time"

// A Kept is the min hold of a hold. It keeps out what the hold excludes, however the hold ended.
type Kept struct {
	Claim
	Until time.Duration // since any moment
}

// Early returns how long before the end of the min hold another hold began; not positive: it did
// not.
func (k Kept) Early(other Claim, began time.Duration) time.Duration {
	if !k.Excludes(other) {
		return 0
	}
	return k.Until - began
}
