-- What a script of sysbench finds: `sysbench` with its tables, the older functions `sb_rand…` and `db_…`, `require`.
-- Run by `w:sysbench "script"` while a workload's file runs. The script itself runs once here, for its options, and once
-- more in each session, with global variables of its own: in sysbench each thread has a Lua state.

local lent = ...
local w, native, script = lent.w, lent.native, lent.script
local ONCE = { data = false }
local command = w:option("command", "text", "run", "What is done: run, prepare, cleanup, or a command of the script's", ONCE)
local threads = w:option("threads", "integer", 1, "How many threads prepare the tables", ONCE)
-- The same object for all sessions of a thread, with its method that asks; there from the first one on.
local tx, one
local type = type

local function take(given) tx, one = given, given.one end

local DRIVERS = { postgres = "pgsql", mysql = "mysql" }
local TYPES = {
  NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6,
  TIME = 7, DATE = 8, DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
}
local READS = { SELECT = true }
local WRITES = { INSERT = true, UPDATE = true, DELETE = true, REPLACE = true }
-- A bulk insert is sent when its text has become so long, in bytes.
local PACKET = 512 * 1024
-- The queries of so many events are added up before they are told.
local TOLD = 16

-- ---- results ------------------------------------------------------------------------------------------------------

local Result = {}

-- How many rows and columns there are is asked where a script looks at it.
local RESULT = {
  __index = function(self, key)
    if key ~= "nrows" and key ~= "nfields" then return Result[key] end
    if not self.row then return 0 end
    local rows, columns = native.size(self.row)
    return key == "nrows" and rows or columns
  end,
}

-- The result of a query whose first row is `row`, or nil.
local function result_of(row) return setmetatable({ row = row }, RESULT) end

-- The next row as a list of texts, with nil for NULL; nil behind the last row.
function Result:fetch_row()
  if not self.row then return nil end
  local place, rows, columns = self.place or 0, native.size(self.row)
  if place >= rows then return nil end
  native.seek(self.row, place)
  self.place = place + 1
  local values = {}
  for column = 1, columns do
    local value = self.row[column]
    if value ~= nil then values[column] = tostring(value) end
  end
  return values
end

function Result:free() end

-- ---- parameters and prepared statements ---------------------------------------------------------------------------

local Parameter = {}
Parameter.__index = Parameter

function Parameter:set(value)
  if value ~= nil and self.type > TYPES.DOUBLE then
    value = tostring(value)
    if self.max_len then value = value:sub(1, self.max_len) end
  end
  self.value = value
end

local function set_whole(self, value)
  if type(value) == "number" and value % 1 ~= 0 then value = value < 0 and math.ceil(value) or math.floor(value) end
  self.value = value
end

function Parameter:set_rand_str(template) self.value = native.string(template) end

local Statement = {}
Statement.__index = Statement
function Statement:close() end

function Statement:bind_create(kind, length)
  return setmetatable({ type = kind, max_len = length, set = kind <= TYPES.BIGINT and set_whole or nil }, Parameter)
end

-- What a query is counted as.
local function class_of(sql)
  local word = sql:match("^[%s(]*(%a*)"):upper()
  return READS[word] and "reads" or WRITES[word] and "writes" or "others"
end

-- SQL with a name of its own in the place of each ?, and how many there are. What stands in quotes or in a comment is left.
local function with_names(sql)
  local pieces, places, at = {}, 0, 1
  while true do
    local mark = sql:find("[?'\"`/-]", at)
    if not mark then break end
    local byte, finish = sql:sub(mark, mark), mark
    pieces[#pieces + 1] = sql:sub(at, mark - 1)
    if byte == "?" then
      places = places + 1
      pieces[#pieces + 1] = ":p" .. places
    else
      if byte == "-" then
        if sql:sub(mark, mark + 1) == "--" then finish = sql:find("\n", mark, true) or #sql end
      elseif byte == "/" then
        if sql:sub(mark, mark + 1) == "/*" then
          local _, last = sql:find("*/", mark + 2, true)
          finish = last or #sql
        end
      else
        finish = sql:find(byte, mark + 1, true) or #sql
      end
      pieces[#pieces + 1] = sql:sub(mark, finish)
    end
    at = finish + 1
  end
  pieces[#pieces + 1] = sql:sub(at)
  return table.concat(pieces), places
end

-- ---- connections --------------------------------------------------------------------------------------------------

-- A session has one connection, whatever a script calls its own.
local Connection = {}
Connection.__index = Connection

function Connection:query(sql)
  local class, mine = class_of(sql), self.mine
  mine[class] = mine[class] + 1
  return result_of(one(tx, tx:query(sql)))
end

-- The values of the first row; nothing where there is none.
function Connection:query_row(sql)
  local result = self:query(sql)
  local row = result:fetch_row()
  if row then return unpack(row, 1, result.nfields) end
end

-- What a statement needs is kept in variables of its two functions: to look it up each time takes longer than to ask.
function Connection:prepare(sql)
  local text, number = with_names(sql)
  local handle, class, mine = tx:query(text), class_of(sql), self.mine
  -- The same object each time: in sysbench, too, a result lasts until the next query.
  local values, result = {}, result_of()
  local bound, first, second
  local statement = setmetatable({ count = number }, Statement)

  function statement:bind_param(...)
    local given = select("#", ...)
    if given ~= number then
      error("bind_param: the statement has " .. number .. " parameters; " .. given .. " are given", 2)
    end
    bound, first, second = { ... }, ...
  end

  function statement:execute()
    mine[class] = mine[class] + 1
    local row
    if number == 0 then
      row = one(tx, handle)
    elseif not bound then
      error("the statement's parameters are not bound: bind_param comes first", 2)
    elseif number == 1 then
      row = one(tx, handle, first.value)
    elseif number == 2 then
      row = one(tx, handle, first.value, second.value)
    else
      for place = 1, number do values[place] = bound[place].value end
      row = one(tx, handle, unpack(values, 1, number))
    end
    result.row, result.place = row, 0
    return result
  end

  return statement
end

function Connection:bulk_insert_init(sql) self.bulk = { head = sql, size = 0 } end

local function send(con, bulk)
  if #bulk == 0 then return end
  local text = bulk.head .. " " .. table.concat(bulk, ",")
  con.bulk = { head = bulk.head, size = 0 }
  con:query(text)
end

function Connection:bulk_insert_next(values)
  local bulk = self.bulk
  if not bulk then error("bulk_insert_next: bulk_insert_init comes first", 2) end
  if bulk.size + #values > PACKET then
    send(self, bulk)
    bulk = self.bulk
  end
  bulk[#bulk + 1], bulk.size = values, bulk.size + #values + 1
end

function Connection:bulk_insert_done()
  local bulk = self.bulk
  if not bulk then error("bulk_insert_done: bulk_insert_init comes first", 2) end
  send(self, bulk)
  self.bulk = nil
end

function Connection:disconnect() end
function Connection:reconnect() end

local Driver = {}
Driver.__index = Driver

function Driver:name() return self.called end

function Driver:connect() return setmetatable({ driver = self, mine = self.mine, error = 0, sql_errno = 0 }, Connection) end

-- ---- options ------------------------------------------------------------------------------------------------------

-- Those of sysbench itself that a workload takes, beside the script's own.
local GENERAL = {
  rand_type = { "How sysbench.rand.default draws", "special" },
  rand_spec_iter = { "Uniform numbers whose mean a gaussian or special draw is", 12 },
  rand_spec_pct = { "The percentage of numbers that are special", 1 },
  rand_spec_res = { "The percentage of draws that are special", 75 },
  rand_pareto_h = { "The parameter h of the law pareto", 0.2 },
  rand_zipfian_exp = { "The exponent of the law zipfian", 0.8 },
  mysql_storage_engine = { "The storage engine, for scripts that ask", "innodb" },
}

-- An option's name as Lua has it.
local function plain(name) return (tostring(name):gsub("-", "_")) end

local function declared(options, name, said)
  if type(said) ~= "table" then
    error("sysbench.cmdline.options." .. name .. " must be a list of a help text and a default", 0)
  end
  local default = said[2]
  local kind = ({ number = "number", boolean = "boolean" })[type(default)] or "text"
  local is_list = type(default) == "table"
  if is_list then default = table.concat(default, ",") end
  if default == nil then default = "" end
  lent.typed(name, kind)
  local value = w:option(name, kind, default, tostring(said[1] or ""), ONCE)
  if is_list then
    local list = {}
    for word in value:gmatch("[^,]+") do list[#list + 1] = word end
    value = list
  end
  options[name] = value
end

local function declare_options(of_script)
  local options, all, names = {}, {}, {}
  for name, said in pairs(GENERAL) do all[name] = said end
  for name, said in pairs(of_script or {}) do all[plain(name)] = said end
  for name in pairs(all) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do declared(options, name, all[name]) end
  return options
end

-- ---- the script's world -------------------------------------------------------------------------------------------

local values -- of the options, once they are known

-- What sysbench offers beside its own table.
local BASE = {}
for _, name in ipairs {
  "_VERSION", "assert", "bit", "error", "getmetatable", "ipairs", "math", "next", "pairs", "pcall", "print", "rawequal",
  "rawget", "rawset", "select", "setmetatable", "string", "table", "tonumber", "tostring", "type", "unpack", "xpcall",
} do BASE[name] = _G[name] end
BASE.io = { write = function(...) print((table.concat({ ... }):gsub("\n$", ""))) end }
BASE.DB_ERROR_NONE, BASE.DB_ERROR_RESTART_TRANSACTION, BASE.DB_ERROR_FAILED = 0, 1, 2

-- The functions that draw, under their names of today.
local function rand()
  return {
    default = native.default, uniform = native.uniform, gaussian = native.gaussian, special = native.special,
    pareto = native.pareto, zipfian = native.zipfian, unique = native.unique, string = native.string,
    uniform_uint64 = native.uniform_uint64, uniform_double = native.uniform_double,
  }
end

-- The functions of sysbench 0.5.
local function older(env, sysbench)
  env.sb_rand, env.sb_rand_uniform = sysbench.rand.default, sysbench.rand.uniform
  env.sb_rand_gaussian, env.sb_rand_special = sysbench.rand.gaussian, sysbench.rand.special
  env.sb_rand_str, env.sb_rand_uniq = sysbench.rand.string, sysbench.rand.unique
  env.sb_rnd = function() return native.uniform(0, 4294967295) end
  local con
  function env.db_connect() con = sysbench.sql.driver():connect() return con end
  function env.db_disconnect() end
  function env.db_query(sql) return con:query(sql) end
  function env.db_bulk_insert_init(sql) con:bulk_insert_init(sql) end
  function env.db_bulk_insert_next(row) con:bulk_insert_next(row) end
  function env.db_bulk_insert_done() con:bulk_insert_done() end
  function env.db_prepare(sql) return con:prepare(sql) end
  -- The list is looked at again each time that the statement is executed.
  function env.db_bind_param(statement, list)
    local bound = {}
    for place = 1, statement.count do
      bound[place] = setmetatable({}, { __index = function() return list[place] end })
    end
    statement:bind_param(unpack(bound, 1, statement.count))
  end
  function env.db_execute(statement) return statement:execute() end
  function env.db_store_results(result) return result end
  function env.db_free_results() end
  function env.db_close() end
end

local UNHEARD = "is not called here: nephoscope reports and decides about errors itself"

-- Which hooks a script may set: what decides about errors would change what is measured.
local function hooks()
  return setmetatable({}, {
    __newindex = function(hooks, name, value)
      if name == "sql_error_ignorable" then
        error("sysbench.hooks." .. name .. " " .. UNHEARD .. "; load.retry.classes says which errors are tried again", 2)
      elseif name ~= "before_restart_event" then
        print("sysbench.hooks." .. tostring(name) .. " " .. UNHEARD)
      end
      rawset(hooks, name, value)
    end,
  })
end

-- A thread's world, before its script has run.
local function world(tid)
  local mine = { reads = 0, writes = 0, others = 0 }
  local env = setmetatable({}, { __index = BASE })
  local driver = setmetatable({ called = DRIVERS[w.dialect] or w.dialect, mine = mine }, Driver)
  local sysbench = {
    tid = tid, version = "1.0.20", version_string = "sysbench 1.0.20", rand = rand(), hooks = hooks(),
    error = { NONE = 0, RESTART_EVENT = 1 },
    sql = { type = TYPES, error = { NONE = 0, IGNORABLE = 1, FATAL = 2 }, driver = function() return driver end },
    cmdline = {
      command = command, script_path = script, PARALLEL_COMMAND = true, ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2,
      ARG_SIZE = 3, ARG_DOUBLE = 4, ARG_STRING = 5, ARG_LIST = 6, ARG_FILE = 7, commands = {},
    },
  }
  env._G, env.sysbench, env.thread_id = env, sysbench, tid
  env.os = { time = native.time, clock = native.time }
  older(env, sysbench)
  local ran = {}
  function env.require(name)
    if ran[name] == nil then
      local chunk, why = lent.load(name, env)
      if not chunk then error(why, 2) end
      ran[name] = true
      ran[name] = chunk() or true
    end
    return ran[name]
  end
  return env, mine
end

-- Runs the script in a world.
local function read(env)
  env.require(script)
  if rawget(env, "thread_run") then
    error(script .. ".lua: thread_run of a script's own is not called here; let it define event", 0)
  end
  return env
end

-- The world of a thread when its script has run.
local function started(tid, threads)
  local env, mine = world(tid)
  read(env)
  local opt = { threads = threads, num_threads = threads, events = 0, time = 0, rate = 0, verbosity = 3, percentile = 95,
    validate = false, debug = false, db_driver = DRIVERS[w.dialect] or w.dialect, db_ps_mode = "auto" }
  for name, value in pairs(values) do opt[name] = value end
  env.sysbench.opt = opt
  return env, mine
end

-- ---- the workload -------------------------------------------------------------------------------------------------

w:describe("the script " .. script .. ".lua of sysbench")
local first = read(world(0))
if type(rawget(first, "event")) ~= "function" then
  error(script .. ".lua has no function event, and can only be required by another script", 0)
end
values = declare_options(first.sysbench.cmdline.options)
lent.laws(values)

local CLASSES = { "reads", "writes", "others" }

-- Tells of the session's queries since the last time.
local function tell(mine)
  for _, class in ipairs(CLASSES) do
    if mine[class] > 0 then tx:tally(class, mine[class]) end
    mine[class] = 0
  end
end

w:session(function(given)
  take(given)
  local tid = tx.session - 1
  if tid == 0 and rawget(first, "init") then started(0, tx.sessions).init() end
  local env, mine = started(tid, tx.sessions)
  if env.thread_init then env.thread_init(tid) end
  local events = 0
  local function event()
    env.event(tid)
    events = (events + 1) % TOLD
    if events == 0 then tell(mine) end
  end
  return { env = env, event = event, counts = mine, tid = tid }
end)

-- What a session does at the end of the run.
lent.done(function(given, pick, thread)
  if thread == nil then return end
  take(given)
  if thread.env.thread_done then thread.env.thread_done(thread.tid) end
  if thread.tid == 0 and rawget(first, "done") then started(0, tx.sessions).done() end
  tell(thread.counts)
end)

w:transaction("event", { help = "a call of the script's event" }, function(_, _, thread) thread.event() end)
w:mix("ALL", { event = 1 })

-- ---- prepare, cleanup and the script's own commands -----------------------------------------------------------------

if command ~= "run" then
  local commands = first.sysbench.cmdline.commands
  local own = commands[command]
  if not own and type(rawget(first, command)) ~= "function" then
    local names = { "run" }
    for name in pairs(commands) do names[#names + 1] = name end
    for _, name in ipairs { "prepare", "cleanup" } do
      if not commands[name] and rawget(first, name) then names[#names + 1] = name end
    end
    table.sort(names)
    error(script .. ".lua has no command " .. command .. "; it has " .. table.concat(names, ", "), 0)
  end
  local function run(given, part)
    take(given)
    local env = started(part - 1, threads)
    local parallel = env.sysbench.cmdline.commands[command]
    local act = parallel and parallel[1] or env[command]
    act()
  end
  w:load({ parts = own and own[2] and threads or 1 }, run)
end
