-- A session in Neovim: what it sees goes to a file as JSON. PYTHON, SERVER, ROOT and OUT are environment variables.
local root, seen = os.getenv("ROOT"), {}
local uri = vim.uri_from_fname(root .. "/main.py")

local function finish(problem)
  seen.problem = problem
  local file = assert(io.open(os.getenv("OUT"), "w"))
  file:write(vim.json.encode(seen))
  file:close()
  vim.cmd("qall!")
end

local function codes(buffer)
  local found = {}
  for _, one in ipairs(vim.diagnostic.get(buffer)) do
    table.insert(found, one.code or one.user_data.lsp.code)
  end
  table.sort(found)
  return found
end

local function wait_for(buffer, wanted, what)
  if not vim.wait(120000, function() return vim.deep_equal(codes(buffer), wanted) end, 50) then
    error(what .. ": " .. vim.inspect(codes(buffer)))
  end
  seen[what] = codes(buffer)
end

-- Take the fix whose title has a word.
local function take(buffer, client, word)
  local all = { start = { line = 0, character = 0 }, ["end"] = { line = 1000, character = 0 } }
  local params = { textDocument = { uri = uri }, range = all, context = { diagnostics = {} } }
  local answers = vim.lsp.buf_request_sync(buffer, "textDocument/codeAction", params, 120000)
  for _, action in ipairs(answers[client].result) do
    if action.kind == "quickfix" and action.title:find(word, 1, true) then
      vim.lsp.util.apply_workspace_edit(action.edit, vim.lsp.get_client_by_id(client).offset_encoding)
      return
    end
  end
  error("no action " .. word .. ": " .. vim.inspect(answers))
end

local function session()
  vim.cmd("edit " .. root .. "/main.py")
  local buffer = vim.api.nvim_get_current_buf()
  local start = vim.lsp.start_client or vim.lsp.start
  local client = start({
    name = "torchrepro_lint",
    cmd = { os.getenv("PYTHON"), os.getenv("SERVER") },
    root_dir = root,
    workspace_folders = { { uri = vim.uri_from_fname(root), name = "project" } },
  })
  vim.lsp.buf_attach_client(buffer, client)
  wait_for(buffer, { "TRL102" }, "opened")
  local last = vim.api.nvim_buf_line_count(buffer)
  vim.api.nvim_buf_set_lines(buffer, last, last, false, { "# \u{1f600} BAD" })
  wait_for(buffer, { "TRL102", "TRL998" }, "edited")
  take(buffer, client, "beside")
  local other = vim.fn.bufnr(root .. "/seeding.py")
  vim.lsp.buf_attach_client(other, client)
  wait_for(buffer, { "TRL998" }, "far")
  take(buffer, client, "write both")
  wait_for(buffer, {}, "both")
  for _, name in ipairs({ "main.py", "seeding.py" }) do
    local there = vim.fn.bufnr(root .. "/" .. name)
    seen[name] = table.concat(vim.api.nvim_buf_get_lines(there, 0, -1, false), "\n") .. "\n"
  end
end

local ok, problem = pcall(session)
finish(not ok and tostring(problem) or nil)
