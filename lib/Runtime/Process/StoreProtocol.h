//===- StoreProtocol.h - Numbers of the store's protocol --------*- C++ -*-===//
// See [Note: the store's protocol] in Store.h.
#ifndef SPMD_LIB_RUNTIME_PROCESS_STOREPROTOCOL_H
#define SPMD_LIB_RUNTIME_PROCESS_STOREPROTOCOL_H

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace spmd::runtime::store {

constexpr uint32_t kValidation = 0x3C85F7CE;

enum class Query : uint8_t {
  Validate = 0,
  Set = 1,
  Get = 3,
  Add = 4,
  Check = 5,
  Wait = 6,
  CancelWait = 12,
  Ping = 13,
  Authenticate = 200, ///< ours
};

/// PyTorch's clients have further ones, for which nobody needs us.
inline bool isQuery(Query query) {
  return query <= Query::Wait ? query != static_cast<Query>(2)
                              : query == Query::CancelWait || query == Query::Ping || query == Query::Authenticate;
}

/// Answers to WAIT, and to CHECK.
enum class Answer : uint8_t { Ready = 0, Cancelled = 1 };

/// Longest key and longest value that a server of ours takes, and what a connection may hold unanswered.
constexpr uint64_t kLongestKey = 4096, kLongestValue = 16 << 20;
constexpr uint64_t kMostKeys = 1024;

template <typename T>
void append(std::string &out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

inline void appendText(std::string &out, const std::string &text) {
  append(out, static_cast<uint64_t>(text.size()));
  out += text;
}

} // namespace spmd::runtime::store

#endif // SPMD_LIB_RUNTIME_PROCESS_STOREPROTOCOL_H
