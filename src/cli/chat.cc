// cli/chat.cc
// The conversation's loop: a line from the terminal, the answer in pieces, and the commands that
// start with '/'. While an answer runs, Ctrl-C stops the answer; at the prompt, twice leaves.
#include "cli/chat.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <deque>

#include "base/disk.h"
#include "base/mutex.h"
#include "cli/answer_printer.h"
#include "cli/format.h"
#include "cli/line_input.h"
#include "cli/local_talker.h"
#include "cli/progress.h"
#include "cli/remote_talker.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "cli/suggest.h"

namespace plumb::cli {
namespace {

constexpr std::string_view kHelp =
    "/help          this\n"
    "/reset         forget the conversation (the system text stays)\n"
    "/system TEXT   what the model is told first; without TEXT: show it; '-' removes it\n"
    "/stats         tokens and speed of the last answer\n"
    "/quit          leave (also Ctrl-D, or Ctrl-C twice)\n"
    "When the model has called a tool, the next line is what the tool gave.\n"
    "Ctrl-C stops an answer. A line that ends with \\ goes on in the next one. //text sends "
    "/text.\n";

constexpr uint64_t kToolsBytesMax = 1u << 20;

// Pieces on their way from the talker's thread to the main one.
class PieceQueue final : public AnswerSink {
 public:
  PieceQueue() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { CHECK(fd_ >= 0); }
  ~PieceQueue() override { close(fd_); }
  PieceQueue(const PieceQueue&) = delete;
  PieceQueue& operator=(const PieceQueue&) = delete;

  // Bounded by the answer: at most a piece a token.
  void OnPiece(AnswerPiece piece) override {
    base::MutexLock lock(mutex_);
    pieces_.push_back(std::move(piece));
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
  }

  int fd() const { return fd_; }  // readable when there are pieces
  std::deque<AnswerPiece> Take() {
    base::MutexLock lock(mutex_);
    uint64_t ignored = 0;
    [[maybe_unused]] const ssize_t got = read(fd_, &ignored, sizeof(ignored));
    return std::exchange(pieces_, {});
  }

 private:
  const int fd_;
  base::Mutex mutex_;
  std::deque<AnswerPiece> pieces_ GUARDED_BY(mutex_);
};

struct Answer {
  AnswerText text;
  AnswerEnd end;
  base::Duration to_first;
  base::Duration total;
};

std::string StatsText(const Answer& answer) {
  const base::Duration decode{answer.total.ns - answer.to_first.ns};
  const uint64_t tokens = answer.end.completion_tokens;
  std::string text = fmt::format("{} prompt tokens, {} answer tokens, first after {:.2f} s",
                                 answer.end.prompt_tokens, tokens, answer.to_first.seconds());
  if (tokens > 1) {
    text += fmt::format(", then {:.1f} tokens/s",
                        static_cast<double>(tokens - 1) / std::max(decode.seconds(), 1e-9));
  }
  if (answer.end.seed) text += fmt::format(", seed {}", *answer.end.seed);
  return text + fmt::format(", ended by {}\n", answer.end.finish_reason);
}

// Thread: main.
class Chat {
 public:
  Chat(const ChatSettings& settings, Talker& talker, Signals& signals, const base::Clock& clock)
      : conversation_(settings.sampling, settings.system),
        talker_(talker),
        signals_(signals),
        clock_(clock),
        input_(STDIN_FILENO, signals),
        in_terminal_(isatty(STDIN_FILENO) == 1),
        out_terminal_(isatty(STDOUT_FILENO) == 1) {}

  base::Status Once(const std::string& text) {
    base::Result<Answer> answer = Ask(text);
    if (!answer.ok()) return answer.status();
    Print("\n");
    if (answer->end.finish_reason != "cancelled") return base::OkStatus();
    return base::Status(base::Code::kCancelled, "stopped before the answer was complete");
  }

  base::Status Converse() {
    if (in_terminal_) {
      Print(fmt::format("talking to {}; /help for commands, Ctrl-D to leave\n", talker_.model()));
    }
    bool interrupted = false;
    while (!left_) {
      if (in_terminal_) Print(Prompt());
      const LineInput::Input input = ReadMessage();
      if (input.kind == LineInput::Kind::kEnd) break;
      if (input.kind == LineInput::Kind::kInterrupt) {
        if (interrupted || !in_terminal_) break;
        Print("\n(Ctrl-C again or Ctrl-D leaves)\n");
        interrupted = true;
        continue;
      }
      interrupted = false;
      if (input.line.empty()) continue;
      if (input.line.starts_with('/') && !input.line.starts_with("//")) {
        Command(input.line);
      } else {
        Turn(input.line.starts_with("//") ? input.line.substr(1) : input.line);
      }
    }
    if (in_terminal_ && !left_) Print("\n");
    return failed_ && !in_terminal_ ? last_error_ : base::OkStatus();
  }

 private:
  std::string Prompt() const {
    if (conversation_.waiting().empty()) return "> ";
    return "result of " + Printable(conversation_.waiting().front().name, 40) + "> ";
  }

  // A line, and the ones it goes on in.
  LineInput::Input ReadMessage() {
    LineInput::Input whole = input_.Next();
    while (whole.kind == LineInput::Kind::kLine && whole.line.ends_with('\\')) {
      whole.line.back() = '\n';
      if (in_terminal_) Print("... ");
      LineInput::Input next = input_.Next();
      if (next.kind == LineInput::Kind::kInterrupt) return next;
      if (next.kind == LineInput::Kind::kEnd) break;
      whole.line += next.line;
    }
    return whole;
  }

  void Turn(const std::string& text) {
    if (conversation_.waiting().size() > 1) return conversation_.AddResult(text);
    base::Result<Answer> answer = Ask(text);
    Print("\n");
    if (!answer.ok()) {
      failed_ = true;
      last_error_ = answer.status();
      const bool full = answer.status().reason() == "context_length_exceeded";
      PrintError("error: " + answer.status().message() +
                 (full ? "; /reset begins a new conversation" : "") + "\n");
      return;
    }
    if (answer->end.finish_reason == "cancelled") Print("(stopped)\n");
    if (answer->end.finish_reason == "length") {
      PrintError("(cut at the length limit: --max-tokens or the context's end)\n");
    }
    conversation_.Add(text, answer->text);
    last_ = std::move(answer).value();
  }

  // Prints the answer as it comes.
  base::Result<Answer> Ask(const std::string& text) {
    Answer answer;
    signals_.Clear();
    const base::Instant start = clock_.Now();
    AnswerPrinter printer(out_terminal_);
    RETURN_IF_ERROR(talker_.Start(conversation_.BodyFor(talker_.model(), text), pieces_));
    while (true) {
      std::array<pollfd, 2> waiting = {pollfd{pieces_.fd(), POLLIN, 0},
                                       pollfd{signals_.fd(), POLLIN, 0}};
      if (poll(waiting.data(), waiting.size(), -1) < 0) continue;  // interrupted: look again
      if (waiting[1].revents != 0) {
        signals_.Clear();
        talker_.Cancel();
      }
      for (AnswerPiece& piece : pieces_.Take()) {
        if (answer.text.empty() && !piece.deltas.empty()) answer.to_first = clock_.Now() - start;
        for (const text::AnswerDelta& delta : piece.deltas) {
          Print(printer.Show(delta));
          answer.text.Add(delta);
        }
        if (!piece.end) continue;
        Print(printer.End());
        answer.end = std::move(*piece.end);
        answer.total = clock_.Now() - start;
        if (!answer.end.status.ok()) return answer.end.status;
        return answer;
      }
    }
  }

  void Command(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space);
    const std::string rest = space < line.size() ? line.substr(space + 1) : "";
    if (name == "/help") {
      Print(kHelp);
    } else if (name == "/reset") {
      conversation_.Reset();
      Print("(a new conversation)\n");
    } else if (name == "/system") {
      System(rest);
    } else if (name == "/stats") {
      Print(last_ ? StatsText(*last_) : "no answer yet\n");
    } else if (name == "/quit" || name == "/exit") {
      left_ = true;
    } else {
      const std::vector<std::string> known = {"/help", "/reset", "/system", "/stats", "/quit"};
      Print("there is no " + Printable(name, 40) + DidYouMean(name, known) +
            " (/help lists all)\n");
    }
  }

  void System(const std::string& text) {
    if (text.empty()) {
      Print(conversation_.system().empty() ? "(none)\n" : conversation_.system() + "\n");
    } else {
      conversation_.SetSystem(text == "-" ? "" : text);
      Print(text == "-" ? "(removed)\n" : "(set)\n");
    }
  }

  Conversation conversation_;
  Talker& talker_;
  Signals& signals_;
  const base::Clock& clock_;
  PieceQueue pieces_;
  LineInput input_;
  const bool in_terminal_;
  const bool out_terminal_;
  bool left_ = false;
  bool failed_ = false;
  base::Status last_error_;
  std::optional<Answer> last_;
};

void AddSamplingOptions(OptionTable& table, ChatSampling& sampling) {
  table.Add(
      Number("temperature", sampling.temperature, {0, 2}, "NUMBER",
             "How freely tokens are drawn; 0 takes the likeliest. Without it 0.7; with models "
             "that think, 1."));
  table.Add(Number("top-p", sampling.top_p, {0, 1, true}, "NUMBER",
                   "Draw among the likeliest tokens that together have this probability."));
  table.Add(Integer("top-k", sampling.top_k, {0, 1u << 20}, "COUNT",
                    "Draw among so many likeliest tokens; 0 = all."));
  table.Add(Number("min-p", sampling.min_p, {0, 1}, "NUMBER",
                   "Draw among tokens at least this share as likely as the likeliest."));
  table.Add(Number("repetition-penalty", sampling.repetition_penalty, {0, 2, true}, "NUMBER",
                   "Above 1: tokens seen before become less likely."));
  table.Add(Integer("seed", sampling.seed, {0, (uint64_t{1} << 63) - 1}, "NUMBER",
                    "The same seed gives the same answer; without one, each is drawn anew."));
  table.Add(Integer("max-tokens", sampling.max_tokens, {0, 1u << 21}, "TOKENS",
                    "Longest answer; 0 = to the end of the context."));
  table.Add(Choice("thinking", sampling.thinking, {"auto", "on", "off"},
                   "Whether the model thinks before it answers, if it can; auto = as it does."));
  table.Add(
      Text("effort", sampling.effort, "LEVEL",
           "How thoroughly it thinks: none, minimal, low, medium, high, xhigh, max, or a number "
           "from 1 to 100."));
  table.Add(Texts("stop", sampling.stop, "TEXT", "A text that ends the answer."));
}

}  // namespace

std::unique_ptr<OptionTable> DeclareChat(CLI::App& app, ChatSettings& settings) {
  auto table = std::make_unique<OptionTable>(app, "chat");
  table->Add(Text("once", settings.once, "TEXT", "Print the answer to TEXT and leave."));
  table->Add(Text("system", settings.system, "TEXT", "What the model is told first."));
  AddSamplingOptions(*table, settings.sampling);
  table->Add(Text("tools", settings.tools, "FILE",
                  "Tools the model may call: a JSON array, as `tools` in a chat request."));
  table->Add(Text("url", settings.url, "URL",
                  "Talk to a running server (http://host:port) instead of loading a model here."));
  table->Add(Text("api-key", settings.api_key, "KEY", "Key for the server at --url."));
  AddEngineOptions(*table, settings.engine);
  return table;
}

base::Status RunChat(const ChatSettings& settings, const VariableReader& variables) {
  if (settings.once && settings.once->empty()) {
    return base::InvalidArgument("--once", "--once: the message is empty");
  }
  // What a conversation would fail of, before a model is loaded for it.
  RETURN_IF_ERROR(CheckEffort(settings.sampling.effort));
  ChatSettings filled = settings;
  if (!settings.tools.empty()) {
    auto tools = base::ReadFile(settings.tools, kToolsBytesMax);
    if (!tools.ok()) return NamingFlag(tools.status(), "--tools");
    RETURN_IF_ERROR(NamingFlag(CheckTools(*tools), "--tools"));
    filled.sampling.tools_json = std::move(tools).value();
  }
  const base::SystemClock clock;
  std::unique_ptr<LocalEngine> local;
  std::unique_ptr<Talker> talker;
  if (settings.url.empty()) {
    ASSIGN_OR_RETURN(EngineModels models, LocateEngineModels(settings.engine, variables));
    ASSIGN_OR_RETURN(local, LocalEngine::Load(std::move(models), settings.engine, {.clock = clock},
                                              ErrorTerminal()));
    ASSIGN_OR_RETURN(talker, LocalTalker::Create(*local));
  } else {
    ASSIGN_OR_RETURN(talker, RemoteTalker::Connect(settings.url, settings.api_key,
                                                   settings.engine.model, clock));
  }
  if (!filled.sampling.temperature && !talker->abilities().guides)
    filled.sampling.temperature = kTemperatureUsual;
  Signals signals({SIGINT});
  Chat chat(filled, *talker, signals, clock);
  const base::Status status = settings.once ? chat.Once(*settings.once) : chat.Converse();
  talker.reset();
  return status;
}

}  // namespace plumb::cli
