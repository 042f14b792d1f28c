/* sanitized.h - whether this is a build for the address or the thread sanitizer, by gcc or clang. Such a
 * build keeps the sanitizer's own heap, and makes system calls that a sandbox forbids.
 */
#ifndef RMEMFS_COMMON_BASE_SANITIZED_H
#define RMEMFS_COMMON_BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#endif
