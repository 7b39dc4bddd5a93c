-- common: small functions that are about no name.

-- whole is a number as the text of an integer.
local function whole(number)
  return string.format('%.0f', number)
end

-- wrong tells whether an answer is the error of another type of key. Other errors are the server's
-- own refusal: a command sent again by call raises it.
local function wrong(answer)
  return type(answer) == 'table' and answer.err and string.find(answer.err, 'WRONGTYPE', 1, true)
end
