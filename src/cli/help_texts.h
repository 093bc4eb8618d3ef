// cli/help_texts.h
// What --help says of each subcommand besides its flags: one paragraph, and examples to copy.
#pragma once

namespace plumb::cli {

struct HelpText {
  const char* what;
  const char* examples;
};

constexpr HelpText kMainHelp = {
    "plumb runs large language models on CPUs, exactly, and serves them over an OpenAI-style API.",
    "Start here:\n"
    "  plumb serve                     serve the default model on 127.0.0.1:8000\n"
    "  plumb chat                      talk to it in this terminal\n"
    "  plumb SUBCOMMAND --help         flags, units, defaults, examples\n\n"
    "Every flag --some-name can also be given as the variable PLUMB_SOME_NAME or as the key\n"
    "some-name of a TOML file named by --config; flags win over variables, variables over the "
    "file.\n"
    "Exit codes: 0 done, 1 failed, 2 called wrongly."};

constexpr HelpText kServeHelp = {
    "Serve one model over HTTP: POST /v1/chat/completions (whole or streamed), GET /v1/models,\n"
    "/health, /ready, /metrics. A model that is not on this machine is downloaded first. Ctrl-C "
    "or\n"
    "SIGTERM finishes running answers and refuses new ones; a second one stops at once.",
    "Examples:\n"
    "  plumb serve\n"
    "  plumb serve --model qwen2.5-coder-0.5b --port 9000 --threads 4\n"
    "  PLUMB_API_KEY=a-long-secret plumb serve --host 0.0.0.0\n"
    "  plumb serve --config plumb.toml          with lines such as: port = 9000\n\n"
    "Environment: PLUMB_<FLAG> for every flag above, and PLUMB_CACHE, the folder for models\n"
    "(default ~/.cache/plumb)."};

constexpr HelpText kChatHelp = {
    "Talk to a model in this terminal: loaded here, or served by a running plumb (--url). Answers\n"
    "appear as they come; /help lists the commands; Ctrl-C stops an answer. Without a terminal "
    "every\n"
    "line of the input is a message.",
    "Examples:\n"
    "  plumb chat\n"
    "  plumb chat --once \"Why is the sky blue?\" --temperature 0\n"
    "  plumb chat --url http://127.0.0.1:8000 --system \"You answer in one sentence.\"\n"
    "  echo \"Name three rivers.\" | plumb chat\n\n"
    "Environment: PLUMB_<FLAG> for every flag above, and PLUMB_CACHE, the folder for models\n"
    "(default ~/.cache/plumb)."};

constexpr HelpText kGenerateHelp = {
    "Answer a file of requests with a model loaded here, many at once. Each line of the input is "
    "a\n"
    "JSON object with \"messages\" (as in the chat API) or \"prompt\" (raw text, no template), an\n"
    "optional \"id\", and sampling fields of the chat API (temperature, seed, max_tokens, stop, "
    "...).\n"
    "Each gets one line of output: index, id, text, finish_reason, usage, seed, or error; for\n"
    "messages also reasoning_content and tool_calls where the model thinks or calls tools. The "
    "same\n"
    "input gives the same answers. A run that was stopped or killed goes on where it was when it "
    "is\n"
    "started again; when all is answered, the output is put in the order of the input.",
    "Examples:\n"
    "  plumb generate --input in.jsonl --output out.jsonl\n"
    "  plumb generate --input in.jsonl --output out.jsonl --model ./my.gguf --max-tokens 256\n\n"
    "A line of the input:\n"
    "  {\"id\": \"q1\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], "
    "\"temperature\": 0}\n\n"
    "Environment: PLUMB_<FLAG> for every flag above, and PLUMB_CACHE, the folder for models\n"
    "(default ~/.cache/plumb)."};

constexpr HelpText kRolloutHelp = {
    "Sample many answers to each prompt of a file, for reinforcement learning: each line of the\n"
    "output has, for every sample, token ids, their log-probabilities, the seed that gives them\n"
    "again, and what names the weights. Lines of the input are those of 'plumb generate'; "
    "\"prompt\"\n"
    "may also be token ids. The same input gives the same samples; a run that was stopped goes on.",
    "Examples:\n"
    "  plumb rollout --input prompts.jsonl --output rollouts.jsonl --samples 16\n"
    "  plumb rollout --input prompts.jsonl --output rollouts.jsonl --samples 64 --seed 7 "
    "--max-tokens 512\n\n"
    "Environment: PLUMB_<FLAG> for every flag above, and PLUMB_CACHE, the folder for models\n"
    "(default ~/.cache/plumb)."};

constexpr HelpText kModelHelp = {"Get, list, inspect, check, quantise and measure models.",
                                 "Examples:\n"
                                 "  plumb model list\n"
                                 "  plumb model pull smollm2-135m\n"
                                 "  plumb model inspect smollm2-135m --context 4096\n"
                                 "  plumb model verify\n"
                                 "  plumb model quantize --model bf16.gguf --type Q4_K_M "
                                 "--output q4.gguf\n"
                                 "  plumb model perplexity --model q4.gguf --text book.txt"};

constexpr HelpText kBenchHelp = {"Measure speed.", "Example:\n  plumb bench engine"};

constexpr HelpText kBenchEngineHelp = {
    "Time a model's prefill and decode on this machine, without server, text and sampling, and "
    "say\n"
    "what share that is of what the machine reaches in a probe of its own (memory read, f32 and\n"
    "integer multiply-adds). Each figure is a median; machine and samples go into --csv and "
    "--json.",
    "Examples:\n"
    "  plumb bench engine\n"
    "  plumb bench engine --model ./my.gguf --prompt 512 --context 0,4096 --batch 1,16\n"
    "  plumb bench engine --threads 8 --csv speed.csv --plot speed.svg\n\n"
    "Environment: PLUMB_<FLAG> for every flag above, and PLUMB_CACHE, the folder for models\n"
    "(default ~/.cache/plumb)."};

constexpr HelpText kVersionHelp = {
    "Print the version, the compiler, and the vector instructions and processors found here.",
    "Example:\n  plumb version"};

}  // namespace plumb::cli
