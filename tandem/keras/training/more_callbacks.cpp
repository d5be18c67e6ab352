#include "tandem/keras/more_callbacks.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <iostream>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/keras/model.h"
#include "tandem/keras/optimizer.h"

namespace tandem::keras::callbacks {

void SwapEMAWeights::swap() {
  const Optimizer& optimizer = model().optimizer();
  const std::vector<Variable>& averages = optimizer.impl()->averages();
  if (averages.empty() && !optimizer.impl()->built()) return;  // nothing was trained yet
  if (averages.empty()) {
    throw InvalidArgumentError(
        "SwapEMAWeights must be used when `use_ema=true` is set on the optimizer.");
  }
  const std::vector<Variable>& weights = optimizer.impl()->weights();
  for (std::size_t i = 0; i < averages.size(); ++i) {
    const Tensor weight = weights[i].read_value();
    weights[i].assign(averages[i].read_value());
    averages[i].assign(weight);
  }
  swapped_ = !swapped_;
}

void SwapEMAWeights::on_epoch_begin(int) {
  if (swap_on_epoch_ && swapped_) swap();
}
void SwapEMAWeights::on_epoch_end(int, Logs&) {
  if (swap_on_epoch_ && !swapped_) swap();
}
void SwapEMAWeights::on_test_begin() {
  if (!swapped_) swap();
}
void SwapEMAWeights::on_test_end(const Logs&) {
  if (swapped_) swap();
}
void SwapEMAWeights::on_predict_begin() {
  if (!swapped_) swap();
}
void SwapEMAWeights::on_predict_end() {
  if (swapped_) swap();
}

void ProgbarLogger::on_epoch_begin(int epoch) {
  if (params().epochs > 1)
    std::cout << "Epoch " << epoch + 1 << '/' << params().epochs << std::endl;
  bar_ = std::make_shared<utils::Progbar>(params().steps);
  steps_ = 0;
}
void ProgbarLogger::on_train_batch_end(std::int64_t batch, const BatchLogs& logs) {
  steps_ = batch + 1;
  if (steps_ != params().steps) bar_->update(steps_, logs.get().entries());
}
void ProgbarLogger::on_epoch_end(int, Logs& logs) { bar_->update(steps_, logs.entries(), true); }

namespace {

std::string json_of(int epoch, const Logs& logs) {
  std::string text = cat("{\"epoch\": ", epoch);
  for (const auto& [name, value] : logs.entries()) {
    char number[32];
    std::snprintf(number, sizeof number, "%.9g", value);
    text += cat(", \"", name, "\": ", number);
  }
  return text + "}";
}

std::string form_encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      encoded += c;
    } else {
      char code[4];
      std::snprintf(code, sizeof code, "%%%02X", byte);
      encoded += code;
    }
  }
  return encoded;
}

// A request by plain HTTP, whose answer is read but not looked at. Throws UnavailableError.
void post(const std::string& root, const std::string& path, const std::string& head,
          const std::string& body) {
  constexpr std::string_view kScheme = "http://";
  if (!root.starts_with(kScheme))
    throw InvalidArgumentError(cat("RemoteMonitor: root must begin with http://, got ", root));
  const std::string place =
      root.substr(kScheme.size(), root.find('/', kScheme.size()) - kScheme.size());
  const std::size_t colon = place.find(':');
  const std::string host = place.substr(0, colon);
  const std::string port = colon == std::string::npos ? "80" : place.substr(colon + 1);
  const addrinfo hints{.ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0)
    throw UnavailableError(cat("no server is known as ", place));
  int connection = -1;
  for (const addrinfo* a = found; a && connection < 0; a = a->ai_next) {
    connection = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(connection, a->ai_addr, a->ai_addrlen) != 0) {
      close(connection);
      connection = -1;
    }
  }
  freeaddrinfo(found);
  if (connection < 0) throw UnavailableError(cat("no server answers at ", place));
  const std::string request =
      cat("POST ", path, " HTTP/1.1\r\nHost: ", place, "\r\n", head,
          "Connection: close\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
  std::size_t sent = 0;
  while (sent < request.size()) {
    const ssize_t n = send(connection, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) break;
    sent += static_cast<std::size_t>(n);
  }
  char answer[512];
  while (recv(connection, answer, sizeof answer, 0) > 0) {
  }
  close(connection);
  if (sent < request.size()) throw UnavailableError(cat("the server at ", place, " hung up"));
}

}  // namespace

void RemoteMonitor::on_epoch_end(int epoch, Logs& logs) {
  const std::string json = json_of(epoch, logs);
  std::string head;
  for (const auto& [name, value] : options_.headers) head += cat(name, ": ", value, "\r\n");
  head += options_.send_as_json ? "Content-Type: application/json\r\n"
                                : "Content-Type: application/x-www-form-urlencoded\r\n";
  try {
    post(options_.root, options_.path, head,
         options_.send_as_json ? json : options_.field + "=" + form_encoded(json));
  } catch (const UnavailableError& error) {
    if (!warned_)
      std::cerr << "warning: could not reach RemoteMonitor root server at " << options_.root << ": "
                << error.what() << '\n';
    warned_ = true;
  }
}

}  // namespace tandem::keras::callbacks
