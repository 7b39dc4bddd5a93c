package mutant

import "github.com/holdfast-go/holdfast/proof/history"

// scriptMutants are bugs in the scripts.
func scriptMutants() []Mutant {
	const lua = "internal/native/lua/"
	return []Mutant{
		{"double grant", torture(history.RuleOverlap), []Patch{{lua + "ask.lua",
			"local turn = exclusive[1] and enters(ticket, payload)\n", "local turn = true\n"}}},
		{"release without owner check", torture(history.RuleOverlap), []Patch{{lua + "free.lua",
			"if not token then\n  return 0\nend\n", "token = token or '0'\n"}}},
		{"renewal without owner check", clock("TestClockKeyTaken"), []Patch{{lua + "renew.lua",
			"    if string.sub(value, 1, 42) ~= ticket then\n", "    if string.sub(value, 1, 2) ~= string.sub(ticket, 1, 2) then\n"}}},
		{"renewal that makes a hold", clock("TestClockRenewalAndRelease"), []Patch{{lua + "renew.lua",
			"  if not value then\n    return '0'\n  end\n",
			"  if not value then\n    redis.call('SET', key, ticket .. ARGV[at + 1], 'PX', ARGV[at + 2])\n    return '1'\n  end\n"}}},
		{"permits taken twice by a replay", model("semaphore"), []Patch{{lua + "ask.lua",
			"if token then\n  last(", "if token and string.byte(ticket, 3) ~= 115 then\n  last("}}},
		{"reader passes a writer", suite("rwmutex_matrix/no_reader_passes_a_writer_that_waits"), []Patch{{lua + "state.lua",
			"      stopped = true\n      break\n", "      at = at + 1\n"}}},
		{"herd instead of one", server("TestNoHerd"), []Patch{
			{lua + "free.lua", "if plain and string.byte(next, 3) == 120 and", "if false and"},
			{lua + "state.lua", "        if channel ~= '' then\n          publish(", `        for _, other in ipairs(redis.call('ZRANGEBYSCORE', line, PLACES, '+inf', 'LIMIT', '0', '8')) do
          local _, _, all = parts(string.sub(other, 27))
          publish(all, 'N' .. string.sub(other, 5, 26) .. '0')
        end
        if channel ~= '' then
          publish(`},
		}},
		{"queue entry leaked", suite("order/what_is_in_order_stays_so_after_an_expiry"), []Patch{{lua + "ask.lua",
			"  if waits and leave(ticket, payload) then\n    tell()\n", "  if false then\n    tell()\n"}}},
		{"waiter granted after it left", model("mutex"), []Patch{{lua + "free.lua",
			"if leave(ticket, payload) then\n", "if redis.call('ZSCORE', line, ticket .. payload) then\n"}}},
		{"dead waiter granted", clock("TestClockDeadWaiter"), []Patch{{lua + "state.lua",
			"local function lives(member, ticket)\n", "local function lives(member, ticket)\n  if true then return true end\n"}}},
		{"grant to one who does not listen", clock("TestClockDeadWaiter"), []Patch{
			{lua + "state.lua", "  return heard.err or heard[2] > 0\n", "  return true\n"},
			{lua + "free.lua", "if not heard.err and heard[2] > 0 then", "if not heard.err then"},
		}},
		{"owners compared by prefix", suite("owner/a_name_that_starts_with_another's"), []Patch{{lua + "state.lua",
			"      if owner == theirs then\n", "      if string.sub(theirs, 1, #owner) == owner then\n"}}},
		{"permit not returned", suite("semaphore_matrix/as_many_as_there_are_permits"), []Patch{{lua + "state.lua",
			"  if weight then\n    redis.call('ZADD', state, whole(held + weight), 'w')\n  end\n", ""}}},
		{"holds of a set never run out", server("TestConformance/redis-server/rwmutex_matrix/one_of_many_readers_runs_out_alone"), []Patch{{lua + "state.lua",
			"      if redis.call('ZCOUNT', state, from, to) > 0 then\n", "      if false then\n"}}},
		{"resize lets nobody in", model("semaphore"), []Patch{{lua + "resize.lua",
			"hand_on(nil)\n", ""}}},
		{"downgrade that frees", suite("rwmutex_downgrade/keeps_the_lease"), []Patch{{lua + "downgrade.lua",
			"  admit(ticket, payload, token, ARGV[3])\n", ""}}},
		{"resume with any token", suite("resume/with_the_wrong_token"), []Patch{{lua + "resume.lua",
			"    and token <= ARGV[6] and ARGV[6] <=", "    and '0' <="}}},
		{"not-after not heeded", clock("TestClockNotAfter"), []Patch{{lua + "ask.lua",
			"if now > ARGV[4] then\n", "if false then\n"}}},
		{"stuck token", server("TestTokensThroughTrouble"), []Patch{{lua + "state.lua",
			"  return string.format('%016.0f', tonumber(largest) + 1)\n", "  return largest\n"}}},
		{"stuck token, simulated", simulation("token"), []Patch{{lua + "state.lua",
			"  return string.format('%016.0f', tonumber(largest) + 1)\n", "  return largest\n"}}},
		{"token goes back with the clock", clock("TestClockTokensGrow"), []Patch{{lua + "ask.lua",
			"if ARGV[6] == '1' and (not last or type(last) == 'string' and last < now) then", "if ARGV[6] == '1' then"}}},
		{"tokens of a block not reserved", suite("tokens/grow_inside_a_process"), []Patch{{lua + "state.lua",
			"tonumber(largest) + tonumber(block)))", "tonumber(largest) + 1))"}}},
		{"min hold forgotten by a release", clock("TestClockMinHold"), []Patch{{lua + "free.lua",
			"if keep <= 0 then\n", "if true then\n"}}},
		{"min hold kept twice", model("semaphore"), []Patch{{lua + "free.lua",
			"  if again then\n", "  if false then\n"}}},
		{"min hold told to one who left", clock("TestClockMinHoldFirstLeaves"), []Patch{{lua + "free.lua",
			"hand_on(nil, true)", "hand_on(nil)"}}},
		{"min hold not told to a new first", clock("TestClockMinHoldNewFirst"), []Patch{{lua + "state.lua",
			"  if moved then\n", "  if false then\n"}}},
		{"key of another kind taken over", suite("kinds/of_one_name_exclude_each_other"), []Patch{{lua + "state.lua",
			"  if sample and (string.sub(", "  if sample and false and (string.sub("}}},
		{"group passes who waits", clock("TestClockGroupPassesNobody"), []Patch{{lua + "all.lua",
			"if waiters and had == 0 or", "if"}}},
		{"latch id not remembered", clock("TestLatchCountDownAnswerLost"), []Patch{{lua + "latch.lua",
			"  if redis.call('ZADD', ids, 'NX', time[1], id) == 1 and standing == 's' then\n", "  if standing == 's' then\n"}}},
		{"latch set twice by a replay", clock("TestLatchSetAnswerLost"), []Patch{{lua + "latch.lua",
			"  if setter == id then\n", "  if false then\n"}}},
		{"latch opens in silence", clock("TestLatchOpensAtOnce"), []Patch{{lua + "latch.lua",
			"    if count == 0 then\n      changed()\n    end\n", ""}}},
	}
}
