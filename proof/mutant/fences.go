package mutant

// fenceMutants returns bugs in package fence, as SQLite and Redis show them.
func fenceMutants() []Mutant {
	const sql, redis = "fence/sql.go", "fence/redis.go"
	fence := func(name string) Check { return Check{Module: "proof", Package: "./fence", Test: name} }
	return []Mutant{
		{"fence: the last token wins", fence("TestTokenInEachRowMissesTheRowsThatTheNewHolderHasNotTouched/SQLite"), []Patch{{sql,
			"max(token, excluded.token)", "excluded.token"}}},
		{"fence: an equal token is late", fence("TestSQLRefusesSmallerTokensAlone/SQLite"), []Patch{{sql,
			"err == nil && token < largest", "err == nil && token <= largest"}}},
		{"fence: the transaction goes on", fence("TestSQLRefusesSmallerTokensAlone/SQLite"), []Patch{{sql,
			"		_ = tx.Rollback() //", "		//"}}},
		{"fence: Redis does not compare", fence("TestRedisScriptRefusesSmallerTokensAlone"), []Patch{{redis,
			"if mine < largest then", "if false then"}}},
		{"fence: Redis forgets the token", fence("TestRedisScriptRefusesSmallerTokensAlone"), []Patch{{redis,
			"redis.call('SET', KEYS[1], ARGV[1])\n", ""}}},
		{"fence: Redis takes what is no token", fence("TestRedisScriptRefusesWhatIsNoToken"), []Patch{{redis,
			"string.match(text, '^[1-9]%d*$') and tonumber(text)", "tonumber(text)"}}},
		{"fence: Redis takes a fence that is no token", fence("TestRedisScriptRefusesWhatIsNoToken"), []Patch{{redis,
			"token(fence) or not fence and 0", "token(fence) or 0"}}},
	}
}
