//! Shared libraries that are loaded at run time: opening one and finding the functions in it.
//!
//! A library is never unloaded: those of Ceph start threads of their own. Not here: what the
//! functions do, and whether their declarations are right for the version that was found.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

/// A library that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// It is not installed, or not in the places where libraries are looked for.
    #[error(
        "cannot load {name}: {reason}; volumes on Ceph need the packages libcephfs2 and librados2"
    )]
    Missing {
        /// The file that was looked for.
        name: &'static str,
        /// The loader's words.
        reason: String,
    },
    /// It lacks a function.
    #[error("{name} has no function {function}; Ceph 16.2 is needed")]
    Symbol {
        /// The library.
        name: &'static str,
        /// The function.
        function: String,
    },
    /// It is of a version that its declarations here are not for.
    #[error("{name} is of version {found}; Ceph 16.2 is needed")]
    Version {
        /// The library.
        name: &'static str,
        /// Its version, as it says itself.
        found: String,
    },
}

/// A library that is loaded.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    name: &'static str,
    handle: NonNull<c_void>,
}

impl Library {
    /// Loads the library with this file name, for the rest of the process.
    ///
    /// # Errors
    /// `Missing`.
    pub(crate) fn open(name: &'static str) -> Result<Self, LibraryError> {
        let missing = |reason| LibraryError::Missing { name, reason };
        let file = CString::new(name).map_err(|_| missing("not a file name".to_owned()))?;
        // SAFETY: `file` is a C string. The initializers of Ceph's libraries set up tables of their
        // own and rely on nothing of this program.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let handle = NonNull::new(handle).ok_or_else(|| missing(last_error()))?;
        Ok(Self { name, handle })
    }

    /// The address of a function.
    ///
    /// # Errors
    /// `Symbol` if there is none of this name.
    pub(crate) fn function(self, function: &str) -> Result<NonNull<c_void>, LibraryError> {
        let missing = || LibraryError::Symbol { name: self.name, function: function.to_owned() };
        let symbol = CString::new(function).map_err(|_| missing())?;
        // SAFETY: the handle is that of a library that stays loaded, and `symbol` is a C string.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), symbol.as_ptr()) };
        NonNull::new(address).ok_or_else(missing)
    }
}

/// The loader's words about its last failure in this thread.
fn last_error() -> String {
    // SAFETY: takes nothing.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return "for an unknown reason".to_owned();
    }
    // SAFETY: what is not null is a C string, which stays until the next call of this thread.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}

/// Declares a table of functions, which `load` finds in a library.
macro_rules! functions {
    (
        $(#[$doc:meta])*
        $table:ident in $file:literal {
            $(fn $name:ident($($argument:ty),* $(,)?) $(-> $returned:ty)?;)*
        }
    ) => {
        $(#[$doc])*
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $returned)?,)*
        }

        impl $table {
            /// The file name of the library.
            pub(crate) const FILE: &'static str = $file;

            /// Loads the library and finds all functions.
            pub(crate) fn load() -> Result<Self, $crate::LibraryError> {
                let library = $crate::library::Library::open(Self::FILE)?;
                Ok(Self {
                    $($name: {
                        let address = library.function(stringify!($name))?.as_ptr();
                        // SAFETY: the library exports the function of this name, and the type is
                        // that of its declaration in the headers of Ceph 16.2. No call is made
                        // before the version was checked.
                        unsafe {
                            std::mem::transmute::<
                                *mut std::ffi::c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $returned)?,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}
pub(crate) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_by_its_name() {
        let missing = Library::open("libthere-is-none.so.7").err().unwrap();
        assert!(missing.to_string().contains("libthere-is-none.so.7"), "{missing}");
        let library = Library::open("libc.so.6").unwrap();
        assert!(library.function("getpid").is_ok());
        let missing = library.function("there_is_none").unwrap_err();
        assert!(missing.to_string().contains("there_is_none"), "{missing}");
    }
}
